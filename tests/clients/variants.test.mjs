import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chunksOf, client, sum, textOf, user, variantsUrl } from './support.mjs';

const options = { skip: !variantsUrl && 'no server of variants' };
const server = variantsUrl && client(variantsUrl);
const requests = (model) => [...Array(6).keys()].map((i) => ({
    ...sum, model, messages: user(`What is ${i + 3} + ${2 * i}? Tell me a story.`), max_tokens: 24,
}));
const text = async (request) => {
    const answer = await server.chat.completions.create(request);
    assert.equal(answer.model, request.model);
    return answer.choices[0].message.content;
};

test('the variants are models with their plans', options, async () => {
    const models = (await server.models.list()).data;
    assert.deepEqual(models.map((m) => m.id), ['base', 'deep']);
    assert.match(JSON.stringify(models[1]), /0\.\.7,4\.\.15/);
});

test('variants in turns and at once answer as each alone', options, async () => {
    const alone = { base: [], deep: [] };
    for (const model of ['base', 'deep']) {
        for (const request of requests(model)) alone[model].push(await text(request));
    }
    assert.notDeepEqual(alone.base, alone.deep);
    const turns = { base: [], deep: [] };
    for (let i = 0; i < 6; ++i) {
        for (const model of ['base', 'deep']) turns[model].push(await text(requests(model)[i]));
    }
    assert.deepEqual(turns, alone);
    const [base, deep] = await Promise.all(
        ['base', 'deep'].map((model) => Promise.all(requests(model).map(text))));
    assert.deepEqual({ base, deep }, alone);
});

test('streams of variants do not mix', options, async () => {
    const streams = ['base', 'deep'].map(async (model) => {
        const [request] = requests(model);
        const chunks = await chunksOf(await server.chat.completions.create({ ...request, stream: true }));
        assert.ok(chunks.every((c) => c.model === model));
        return textOf(chunks);
    });
    const alone = await Promise.all(['base', 'deep'].map((model) => text(requests(model)[0])));
    assert.deepEqual(await Promise.all(streams), alone);
});
