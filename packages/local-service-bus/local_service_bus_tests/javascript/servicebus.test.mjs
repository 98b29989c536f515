// An application of @azure/service-bus, on a local Service Bus with the queues `batches`, `failing` (three deliveries at
// most), `settled` and `sessions`, and the topic `events` with the subscription `changing`. Environment: SERVICEBUS_CONNECTION.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ServiceBusClient } from "@azure/service-bus";

const client = new ServiceBusClient(process.env.SERVICEBUS_CONNECTION, { retryOptions: { maxRetries: 0 } });
const SOON = { maxWaitTimeInMs: 5000 };
const bodies = (messages) => messages.map((one) => one.body);

/** Links to a queue: they open when they are used, and close with the client. */
const links = (queue) => [
  client.createSender(queue), client.createReceiver(queue), client.createReceiver(queue, { subQueueType: "deadLetter" }),
];

after(() => client.close());

async function receiveAll(receiver, most) {
  const found = [];
  while (found.length < most) {
    const some = await receiver.receiveMessages(most - found.length, SOON);
    if (!some.length) break;
    found.push(...some);
  }
  return found;
}

test("messages that are sent together arrive one by one", async () => {
  const [sender, receiver] = links("batches");
  const numbered = (n) => ({ body: { n }, messageId: `${n}`, applicationProperties: { n }, subject: "numbered" });
  await sender.sendMessages([0, 1, 2].map(numbered));
  const batch = await sender.createMessageBatch();
  for (const n of [3, 4]) assert.ok(batch.tryAddMessage({ body: { n }, messageId: `${n}` }));
  await sender.sendMessages(batch);
  await sender.sendMessages({ body: { n: 5 }, messageId: "5" });
  const found = await receiveAll(receiver, 6);
  assert.deepEqual(bodies(found), [0, 1, 2, 3, 4, 5].map((n) => ({ n })));
  assert.deepEqual(found.map((one) => one.messageId), ["0", "1", "2", "3", "4", "5"]);
  assert.deepEqual(found.map((one) => one.applicationProperties?.n), [0, 1, 2, undefined, undefined, undefined]);
  for (const one of found) await receiver.completeMessage(one);
});

test("a message whose body is a message stays one message", async () => {
  const [sender, receiver] = links("batches");
  const inner = Buffer.from([0x00, 0x53, 0x77, 0xa1, 0x01, 0x61]); // An AMQP message whose value is "a".
  await sender.sendMessages({ body: inner, messageId: "outer" });
  const [found] = await receiver.receiveMessages(1, SOON);
  assert.deepEqual([...found.body], [...inner]);
  await receiver.completeMessage(found);
});

test("a message that is abandoned too often is a dead letter", async () => {
  const [sender, receiver, graves] = links("failing");
  await sender.sendMessages({ body: "poison", messageId: "p" });
  for (const failed of [0, 1, 2]) {
    const [found] = await receiver.receiveMessages(1, SOON);
    assert.equal(found.deliveryCount, failed);
    await receiver.abandonMessage(found);
  }
  const [dead] = await graves.receiveMessages(1, SOON);
  assert.equal(dead.deadLetterReason, "MaxDeliveryCountExceeded");
  await graves.completeMessage(dead);
});

test("messages are completed, deferred and dead-lettered with their reasons", async () => {
  const [sender, receiver, graves] = links("settled");
  await sender.sendMessages(["a", "b", "c"].map((id) => ({ body: id, messageId: id })));
  const [first, second, third] = await receiveAll(receiver, 3);
  await receiver.completeMessage(first);
  await receiver.deferMessage(second);
  await receiver.deadLetterMessage(third, { deadLetterReason: "bad", deadLetterErrorDescription: "it is bad" });
  const [deferred] = await receiver.receiveDeferredMessages(second.sequenceNumber);
  assert.equal(deferred.body, "b");
  await receiver.completeMessage(deferred);
  const [dead] = await graves.receiveMessages(1, SOON);
  assert.deepEqual([dead.body, dead.deadLetterReason, dead.deadLetterErrorDescription], ["c", "bad", "it is bad"]);
  await graves.completeMessage(dead);
  assert.deepEqual(await receiver.peekMessages(10), []);
});

test("properties that a receiver sets stay with the message", async () => {
  const [sender, receiver, graves] = links("settled");
  await sender.sendMessages({ body: "x", messageId: "x", applicationProperties: { from: "sender", tried: 0 } });
  const [first] = await receiver.receiveMessages(1, SOON);
  await receiver.abandonMessage(first, { tried: 1 });
  const [again] = await receiver.receiveMessages(1, SOON);
  assert.deepEqual(again.applicationProperties, { from: "sender", tried: 1 });
  await receiver.deferMessage(again, { tried: 2, text: "deferred" });
  const [deferred] = await receiver.receiveDeferredMessages(again.sequenceNumber);
  assert.deepEqual(deferred.applicationProperties, { from: "sender", tried: 2, text: "deferred" });
  await receiver.deadLetterMessage(deferred, { deadLetterReason: "bad", extra: "e" });
  const [dead] = await graves.receiveMessages(1, SOON);
  const { from, tried, extra } = dead.applicationProperties;
  assert.deepEqual([from, tried, extra, dead.deadLetterReason], ["sender", 2, "e", "bad"]);
  await graves.completeMessage(dead);
  await sender.sendMessages({ body: "y", messageId: "y" });
  const [last] = await receiver.receiveMessages(1, SOON);
  await receiver.deadLetterMessage(last, { deadLetterReason: "worse", extra: "link" });
  const [buried] = await graves.receiveMessages(1, SOON);
  assert.deepEqual([buried.applicationProperties.extra, buried.deadLetterReason], ["link", "worse"]);
  await graves.completeMessage(buried);
});

test("a message that is sent without an id gets one, and is settled", async () => {
  const [sender, receiver] = links("settled");
  await sender.sendMessages([{ body: "x" }, { body: "y", subject: "s" }]);
  const found = await receiveAll(receiver, 2);
  assert.deepEqual(found.map((one) => [one.body, one.subject]), [["x", undefined], ["y", "s"]]);
  assert.equal(new Set(found.map((one) => one.messageId)).size, 2);
  assert.ok(found.every((one) => one.messageId));
  for (const one of found) await receiver.completeMessage(one);
});

test("an entity that there is not is not found", async () => {
  const sender = client.createSender("nowhere");
  await assert.rejects(sender.sendMessages({ body: 1 }), { code: "MessagingEntityNotFound" });
});

test("a client knows by its code what was refused", async () => {
  const [sender, receiver] = links("settled");
  await sender.sendMessages({ body: "x", messageId: "lost" });
  const [found] = await receiver.receiveMessages(1, SOON);
  await receiver.completeMessage(found);
  await assert.rejects(receiver.renewMessageLock(found), { code: "MessageLockLost" });
  await assert.rejects(receiver.receiveDeferredMessages(found.sequenceNumber), { code: "MessageNotFound" });
  await assert.rejects(sender.cancelScheduledMessages(found.sequenceNumber), { code: "MessageNotFound" });
  await assert.rejects(sender.sendMessages({ body: Buffer.alloc(300_000) }), { code: "MessageSizeExceeded" });
});

test("the rules of a subscription change while it runs", async () => {
  const rules = client.createRuleManager("events", "changing");
  const named = async () => (await rules.getRules()).map((rule) => [rule.name, rule.filter]);
  assert.deepEqual(await named(), [["$Default", { sqlExpression: "1=1" }]]);
  await rules.deleteRule("$Default");
  assert.deepEqual(await named(), []);
  await rules.createRule("red", { subject: "red", applicationProperties: { size: 1 } });
  const [[name, filter]] = await named();
  assert.deepEqual([name, filter.subject, filter.applicationProperties], ["red", "red", { size: 1 }]);
  await assert.rejects(rules.createRule("red", { subject: "x" }), { code: "MessagingEntityAlreadyExists" });
  await assert.rejects(rules.deleteRule("blue"), { code: "MessagingEntityNotFound" });
  await assert.rejects(rules.createRule("sql", { sqlExpression: "size > 1" }), /no SQL filters/);
  const sender = client.createSender("events");
  const sizes = [0, 1, 2].map((size) => ({ body: size, messageId: `${size}`, subject: "red", applicationProperties: { size } }));
  await sender.sendMessages(sizes);
  const receiver = client.createReceiver("events", "changing");
  const found = await receiver.receiveMessages(3, SOON);
  assert.deepEqual(bodies(found), [1]);
  await receiver.completeMessage(found[0]);
});

test("a session gives its messages in order, and nobody else", async () => {
  const sender = client.createSender("sessions");
  await sender.sendMessages([0, 1, 2, 3].map((n) => ({ body: n, messageId: `${n}`, sessionId: n % 2 ? "odd" : "even" })));
  const receiver = await client.acceptSession("sessions", "even");
  await assert.rejects(client.acceptSession("sessions", "even"), { code: "SessionCannotBeLocked" });
  const found = await receiveAll(receiver, 2);
  assert.deepEqual(bodies(found), [0, 2]);
  for (const one of found) await receiver.completeMessage(one);
  await receiver.setSessionState({ done: 2 });
  assert.deepEqual(await receiver.getSessionState(), { done: 2 });
});
