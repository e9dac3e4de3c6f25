import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import { client, errorOf, key, keyUrl, one, oracle, sum, user, variantsUrl } from './support.mjs';

test('a bad field is a 400 that names it', { skip: oracle }, async () => {
    for (const [field, value] of [['temperature', 'hot'], ['max_tokens', 'many'], ['top_logprobs', 1000],
        ['n', 0], ['stop', 7], ['logit_bias', 7], ['messages', 'hello'], ['response_format', { type: 'xml' }]]) {
        const error = await errorOf(one.chat.completions.create({ ...sum, logprobs: true, [field]: value }));
        assert.ok(error instanceof OpenAI.BadRequestError, `${field}: ${error}`);
        assert.equal(error.status, 400);
        assert.ok(error.message.includes(field) || error.param?.includes(field), `${field}: ${error.message}`);
        assert.equal(error.type, 'invalid_request_error');
    }
});

test('a conversation that is too long is a 400 with both numbers', async () => {
    const error = await errorOf(one.chat.completions.create({ ...sum, messages: user('cat '.repeat(3000)) }));
    assert.equal(error.status, 400);
    assert.match(error.message, /\d{4}.*\d{3}/);
});

test('a path that does not exist is a 404', async () => {
    const error = await errorOf(one.post('/nothing/here', { body: {} }));
    assert.ok(error instanceof OpenAI.NotFoundError);
});

test('a key is asked for', { skip: !keyUrl && 'no server with a key' }, async () => {
    for (const path of ['chat', 'models']) {
        const call = (c) => path === 'chat' ? c.chat.completions.create(sum) : c.models.list();
        const error = await errorOf(call(client(keyUrl, { apiKey: 'wrong' })));
        assert.ok(error instanceof OpenAI.AuthenticationError, String(error));
        assert.equal(error.status, 401);
        assert.ok(await call(client(keyUrl, { apiKey: key })));
    }
});

test('with variants an unknown model is a 404 that lists them', { skip: !variantsUrl && 'no variants' }, async () => {
    const error = await errorOf(client(variantsUrl).chat.completions.create({ ...sum, model: 'shallow' }));
    assert.ok(error instanceof OpenAI.NotFoundError, String(error));
    assert.match(error.message, /base.*deep/);
    const missing = await errorOf(client(variantsUrl).models.retrieve('shallow'));
    assert.equal(missing.status, 404);
});
