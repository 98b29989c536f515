// In place of the helper that the cases share: an expected error is any refusal, since its text is the library's own.
const assert = require("node:assert");
const { default: query, Refusal } = require("../../lib");

module.exports = {
  __esModule: true,
  default: (items, { query: text, ...options }, expected) => () => {
    if (expected instanceof Error || expected.prototype instanceof Error) {
      assert.throws(() => query(text).exec(items, options), Refusal);
    } else {
      assert.deepStrictEqual(query(text).exec(items, options).result, expected);
    }
  },
};
