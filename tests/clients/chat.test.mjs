import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunksOf, one, oracle, sum, tale, textOf, url, user } from './support.mjs';

test('the models list names the model', async () => {
    const models = (await one.models.list()).data;
    assert.equal(models.length, 1);
    assert.equal(models[0].object, 'model');
    if (!oracle) assert.equal((await one.models.retrieve(models[0].id)).id, models[0].id);
});

test('a chat answers, and says what it took', async () => {
    const answer = await one.chat.completions.create(sum);
    assert.equal(answer.object, 'chat.completion');
    assert.match(answer.id, /^chatcmpl-/);
    assert.equal(answer.choices.length, 1);
    assert.equal(answer.choices[0].message.role, 'assistant');
    assert.ok(answer.choices[0].message.content.length > 0);
    assert.equal(answer.choices[0].finish_reason, 'stop');
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.ok(prompt_tokens > 5 && completion_tokens > 0);
    assert.equal(total_tokens, prompt_tokens + completion_tokens);
    assert.ok(answer.system_fingerprint.length > 0);
    assert.ok(Math.abs(answer.created - Date.now() / 1000) < 3600);
});

test('a stream adds up to the plain answer', async () => {
    const plain = await one.chat.completions.create(sum);
    const chunks = await chunksOf(await one.chat.completions.create({ ...sum, stream: true }));
    assert.equal(textOf(chunks), plain.choices[0].message.content);
    assert.equal(chunks[0].object, 'chat.completion.chunk');
    assert.equal(chunks[0].choices[0].delta.role, 'assistant');
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
    const ends = chunks.filter((c) => c.choices[0]?.finish_reason);
    assert.deepEqual(ends.map((c) => c.choices[0].finish_reason), ['stop']);
    assert.ok(chunks.every((c) => !c.usage), 'usage comes only when asked for');
});

test('usage comes last when asked for', async () => {
    const plain = await one.chat.completions.create(sum);
    const chunks = await chunksOf(await one.chat.completions.create(
        { ...sum, stream: true, stream_options: { include_usage: true } }));
    const last = chunks.at(-1);
    assert.deepEqual(last.choices, []);
    assert.equal(last.usage.completion_tokens, plain.usage.completion_tokens);
    assert.equal(last.usage.prompt_tokens, plain.usage.prompt_tokens);
    assert.ok(chunks.slice(0, -1).every((c) => !c.usage));
});

test("the client's stream helper understands the stream", async () => {
    const plain = await one.chat.completions.create(sum);
    const stream = one.chat.completions.stream(sum);
    let shown = '';
    stream.on('content', (delta) => { shown += delta; });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0].message.content, plain.choices[0].message.content);
    assert.equal(shown, plain.choices[0].message.content);
});

test('a stream that is aborted ends, and the server goes on', async () => {
    const stream = await one.chat.completions.create({ ...tale, stream: true });
    let n = 0;
    for await (const chunk of stream) {
        assert.ok(chunk);
        if (++n === 5) stream.controller.abort();
    }
    assert.ok(n >= 5 && n < 250, `${n} chunks came`);
    // The slot is free again: as many requests as there are slots are answered at once.
    await Promise.all([1, 2, 3, 4].map(() => one.chat.completions.create(sum)));
});

test('a plain request can be aborted', async () => {
    const controller = new AbortController();
    const answer = one.chat.completions.create(
        { ...tale, max_tokens: 400, n: 1 }, { signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    await assert.rejects(answer, { name: 'Error', message: /aborted/ });
    assert.ok((await one.chat.completions.create(sum)).choices[0].message.content);
});

test("the client's timeout ends a request", async () => {
    await assert.rejects(one.chat.completions.create({ ...tale, max_tokens: 400 }, { timeout: 20 }),
        /timed out/);
    assert.ok((await one.chat.completions.create(sum)).choices[0].message.content);
});

test('n answers come back in order, and differ', async () => {
    const anything = { temperature: 2, top_k: 0, top_p: 1, min_p: 0 };
    const request = { ...tale, ...anything, ignore_eos: false, seed: 7, n: 3, max_tokens: 24 };
    const answer = await one.chat.completions.create(request);
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2]);
    if (!oracle) assert.ok(new Set(answer.choices.map((c) => c.message.content)).size > 1);
    const chunks = await chunksOf(await one.chat.completions.create({ ...request, stream: true }));
    for (const i of [0, 1, 2]) {
        const ends = chunks.filter((c) => c.choices[0]?.index === i && c.choices[0].finish_reason);
        assert.equal(ends.length, 1, `answer ${i} ends once`);
    }
});

test('a seed repeats an answer', async () => {
    const request = { ...tale, temperature: 1.2, seed: 42, max_tokens: 32 };
    const texts = [];
    for (let i = 0; i < 2; ++i) {
        texts.push((await one.chat.completions.create(request)).choices[0].message.content);
    }
    assert.equal(texts[0], texts[1]);
    const other = await one.chat.completions.create({ ...request, seed: 43 });
    assert.notEqual(other.choices[0].message.content, texts[0]);
});

test('a stop string ends the answer before it', async () => {
    const whole = (await one.chat.completions.create({ ...tale, max_tokens: 64 })).choices[0].message.content;
    const stop = whole.slice(20, 26);
    for (const form of [stop, ['never there', stop]]) {
        const answer = await one.chat.completions.create({ ...tale, max_tokens: 64, stop: form });
        assert.equal(answer.choices[0].message.content, whole.slice(0, whole.indexOf(stop)));
        assert.equal(answer.choices[0].finish_reason, 'stop');
    }
    const chunks = await chunksOf(await one.chat.completions.create(
        { ...tale, max_tokens: 64, stop: [stop], stream: true }));
    assert.equal(textOf(chunks), whole.slice(0, whole.indexOf(stop)));
});

test('max_tokens and max_completion_tokens bound an answer', async () => {
    for (const field of ['max_tokens', 'max_completion_tokens']) {
        const answer = await one.chat.completions.create({ ...tale, max_tokens: undefined, [field]: 5 });
        assert.equal(answer.usage.completion_tokens, 5);
        assert.equal(answer.choices[0].finish_reason, 'length');
    }
});

test('logprobs tell of each token', async () => {
    const answer = await one.chat.completions.create({ ...sum, logprobs: true, top_logprobs: 3 });
    const content = answer.choices[0].logprobs.content;
    const text = Buffer.concat(content.map((t) => Buffer.from(t.bytes))).toString();
    assert.ok(text.startsWith(answer.choices[0].message.content));
    for (const token of content) {
        assert.equal(token.top_logprobs.length, 3);
        assert.ok(token.logprob <= 0);
        // Greedily the likeliest is drawn.
        assert.equal(token.top_logprobs[0].token, token.token);
        assert.ok(token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob);
    }
    const chunks = await chunksOf(await one.chat.completions.create(
        { ...sum, logprobs: true, top_logprobs: 3, stream: true }));
    const streamed = chunks.flatMap((c) => c.choices[0]?.logprobs?.content ?? []);
    // Stock's plain answers tell of the end token too, its streams do not.
    if (!oracle) assert.deepEqual(streamed.map((t) => t.token), content.map((t) => t.token));
});

test('logit_bias forbids and forces tokens', async () => {
    const tokens = async (content) => (await (await fetch(`${url}/tokenize`, {
        method: 'POST', headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ content }),
    })).json()).tokens;
    const plain = (await one.chat.completions.create(sum)).choices[0].message.content;
    const first = (await tokens(plain))[0];
    const biased = await one.chat.completions.create({ ...sum, logit_bias: { [first]: -100 } });
    assert.notEqual((await tokens(biased.choices[0].message.content))[0], first);
    const [forced] = await tokens('a');
    const all = await one.chat.completions.create({ ...sum, max_tokens: 4, logit_bias: { [forced]: 100 } });
    assert.equal(all.choices[0].message.content, 'aaaa');
});

test('conversations, system messages and parts of content are understood', async () => {
    const texts = await Promise.all([
        [{ role: 'system', content: 'Be brief.' }, ...sum.messages],
        [{ role: 'system', content: [{ type: 'text', text: 'Be brief.' }] }, ...sum.messages],
        [{ role: 'system', content: 'Be brief.' },
            { role: 'user', content: [{ type: 'text', text: 'What is 12 + 30?' }] }],
    ].map(async (messages) => (await one.chat.completions.create({ ...sum, messages })).choices[0].message.content));
    assert.equal(new Set(texts).size, 1);
    const next = await one.chat.completions.create({
        ...sum, messages: [...sum.messages, { role: 'assistant', content: texts[0] }, ...user('And 1 + 1?')],
    });
    assert.ok(next.choices[0].message.content);
});

test('concurrent requests answer as one at a time', async () => {
    const requests = [...Array(8).keys()].map((i) => ({ ...sum, messages: user(`What is ${i + 3} + ${2 * i}?`) }));
    const text = async (r) => (await one.chat.completions.create(r)).choices[0].message.content;
    const alone = [];
    for (const request of requests) alone.push(await text(request));
    assert.deepEqual(await Promise.all(requests.map(text)), alone);
});
