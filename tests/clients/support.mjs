// What the driver's parts share: the servers under test, whose addresses the environment names.
import OpenAI from 'openai';

const need = (name) => {
    if (!process.env[name]) throw new Error(`${name} is not set`);
    return process.env[name];
};

/// A server of one plan with a template that has tools.
export const url = need('PLEAT_URL');
export const one = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
/// A server of the variants base and deep.
export const variantsUrl = process.env.PLEAT_VARIANTS_URL;
/// A server that wants a key.
export const keyUrl = process.env.PLEAT_KEY_URL;
export const key = process.env.PLEAT_KEY;
/// Set when the server is llama.cpp's own: what it does otherwise on purpose is not asked of it.
export const oracle = Boolean(process.env.PLEAT_ORACLE);

export const client = (baseUrl, options = {}) =>
    new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'any', maxRetries: 0, ...options });

export const user = (content) => [{ role: 'user', content }];
/// A short request that always gives the same answer.
export const sum = { model: 'demo', messages: user('What is 12 + 30?'), temperature: 0 };
/// One that goes on for long.
export const tale = {
    model: 'demo', messages: user('Tell me a story.'), max_tokens: 300, temperature: 0, ignore_eos: true,
};

/// All chunks of a stream.
export async function chunksOf(stream) {
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
}

/// The answer that the chunks of a chat add up to.
export const textOf = (chunks) => chunks.map((c) => c.choices[0]?.delta?.content ?? '').join('');

/// The error of a call that has to fail.
export async function errorOf(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    throw new Error('the call did not fail');
}
