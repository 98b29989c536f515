// Stands in front of the emulator in place of the library that the cases test: `query(text).exec(items, options)`, without a promise.
const { MessageChannel, receiveMessageOnPort, Worker } = require("node:worker_threads");

const asked = new Int32Array(new SharedArrayBuffer(4));
const { port1: port, port2: remote } = new MessageChannel();
const asker = `
  const { workerData: { port, asked, url } } = require("node:worker_threads");
  port.on("message", async (body) => {
    port.postMessage(await (await fetch(url, { method: "POST", body })).text());
    Atomics.store(asked, 0, 1);
    Atomics.notify(asked, 0);
  });`;
const url = process.env.CASES_ACCOUNT;
new Worker(asker, { eval: true, workerData: { port: remote, asked, url }, transferList: [remote] }).unref();

class Refusal extends Error {}

function answer(question) {
  Atomics.store(asked, 0, 0);
  port.postMessage(JSON.stringify(question));
  Atomics.wait(asked, 0, 0);
  const reply = JSON.parse(receiveMessageOnPort(port).message);
  if (reply.refused) throw new Refusal(reply.refused);
  return reply;
}

module.exports = {
  __esModule: true,
  default: (query) => ({ exec: (items, options = {}) => answer({ ...options, query, items: items ?? [] }) }),
  Refusal,
  SyntaxError,
};
