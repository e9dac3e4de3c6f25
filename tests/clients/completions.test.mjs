import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunksOf, one } from './support.mjs';

const story = { model: 'demo', prompt: 'The cat near the tower', max_tokens: 24, temperature: 0 };

test('a completion goes on with the prompt', async () => {
    const answer = await one.completions.create(story);
    assert.equal(answer.object, 'text_completion');
    assert.ok(answer.choices[0].text.length > 0);
    assert.ok(['stop', 'length'].includes(answer.choices[0].finish_reason));
    assert.ok(answer.usage.completion_tokens <= 24);
    const chunks = await chunksOf(await one.completions.create({ ...story, stream: true }));
    assert.equal(chunks.map((c) => c.choices[0]?.text ?? '').join(''), answer.choices[0].text);
});

test('prompts come as lists of texts or of tokens', async () => {
    const single = await one.completions.create(story);
    const answer = await one.completions.create({ ...story, prompt: [story.prompt, 'Once upon a time'] });
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1]);
    assert.equal(answer.choices[0].text, single.choices[0].text);
    const tokens = await one.completions.create({ ...story, prompt: [65, 66, 67] });
    assert.ok(tokens.usage.prompt_tokens >= 3);
});

test('completions tell log probabilities', async () => {
    const answer = await one.completions.create({ ...story, logprobs: 2 });
    assert.ok(answer.choices[0].logprobs);
});

test('embeddings are vectors of length one, by the item', async () => {
    const inputs = ['The cat', 'A tower', 'The cat'];
    const answer = await one.embeddings.create({ model: 'demo', input: inputs, encoding_format: 'float' });
    assert.deepEqual(answer.data.map((d) => d.index), [0, 1, 2]);
    for (const { embedding } of answer.data) {
        assert.equal(embedding.length, answer.data[0].embedding.length);
        assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-4);
    }
    assert.deepEqual(answer.data[0].embedding, answer.data[2].embedding);
    assert.notDeepEqual(answer.data[0].embedding, answer.data[1].embedding);
    assert.ok(answer.usage.prompt_tokens > 0);
});

test("the client's own form of embeddings, base64, is the same", async () => {
    const request = { model: 'demo', input: 'The cat near the tower' };
    const plain = await one.embeddings.create({ ...request, encoding_format: 'float' });
    const packed = await one.embeddings.create(request);  // asks for base64 and unpacks it
    assert.equal(packed.data[0].embedding.length, plain.data[0].embedding.length);
    packed.data[0].embedding.forEach((x, i) =>
        assert.ok(Math.abs(x - plain.data[0].embedding[i]) < 1e-6));
});
