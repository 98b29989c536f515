// Plays one scenario against the endpoint by rhea, an AMQP client that knows nothing of Service Bus.
// Arguments: port, key name, key. One line of JSON on standard output: what was seen.
"use strict";

const crypto = require("crypto");
const rhea = require("rhea");

const [port, keyName, key] = process.argv.slice(2);
const DEAD_LETTER = "com.microsoft:dead-letter";
const SCHEDULED = "x-opt-scheduled-enqueue-time";
const BATCH_FORMAT = 0x80013700;
const SESSION = "com.microsoft:session-filter";

const container = rhea.create_container({ id: "rhea" });
const once = (emitter, event) => new Promise((resolve) => emitter.once(event, resolve));

function signature(resource) {
  const encoded = encodeURIComponent(resource);
  const expiry = Math.floor(Date.now() / 1000) + 3600;
  const signed = crypto.createHmac("sha256", key).update(`${encoded}\n${expiry}`).digest("base64");
  return `SharedAccessSignature sr=${encoded}&sig=${encodeURIComponent(signed)}&se=${expiry}&skn=${keyName}`;
}

async function connect() {
  const connection = container.connect({ host: "127.0.0.1", port, username: "anonymous", reconnect: false });
  await once(connection, "connection_open");
  return connection;
}

async function openSender(connection, address) {
  const sender = connection.open_sender({ target: { address } });
  await once(sender, "sendable");
  return sender;
}

async function openReceiver(connection, address, filter) {
  const source = filter ? { address, filter } : { address };
  const receiver = connection.open_receiver({ source, credit_window: 0, autoaccept: false, rcv_settle_mode: 1 });
  await once(receiver, "receiver_open");
  return receiver;
}

async function send(sender, message) {
  const delivery = sender.send(message);
  const refused = new Promise((resolve) =>
    sender.once("rejected", (context) => resolve(context.delivery.remote_state.error.condition)));
  const settled = new Promise((resolve) => sender.once("accepted", () => resolve("accepted")));
  return Promise.race([refused, settled, delivery.state && "accepted"].filter(Boolean));
}

async function receive(receiver) {
  receiver.add_credit(1);
  const { message, delivery } = await once(receiver, "message");
  return { message, delivery };
}

async function settle(receiver, action) {
  const settled = once(receiver, "settled");
  action();
  await settled;
}

async function asker(connection, node) {
  const replyTo = `${node}-replies`;
  const sender = await openSender(connection, node);
  const receiver = connection.open_receiver({ source: { address: node }, target: { address: replyTo } });
  await once(receiver, "receiver_open");
  let asked = 0;
  return async (operation, body, properties) => {
    const reply = once(receiver, "message");
    const application_properties = { operation, ...properties };
    sender.send({ message_id: `${++asked}`, reply_to: replyTo, application_properties, body });
    return (await reply).message;
  };
}

const seenOf = ({ message }) => ({
  id: message.message_id,
  body: message.body.content.toString(),
  failed: message.delivery_count,
  number: message.message_annotations["x-opt-sequence-number"],
});

async function settling(connection) {
  const sender = await openSender(connection, "orders");
  const data = (text) => rhea.message.data_section(Buffer.from(text));
  const sent = [];
  for (const id of ["a", "b", "c", "d"]) sent.push(await send(sender, { message_id: id, body: data(`body of ${id}`) }));
  const ended = once(sender, "sender_error");
  const large = await send(sender, { message_id: "large", body: data("x".repeat(20000)) });
  await ended;
  const receiver = await openReceiver(connection, "orders");
  const got = [];
  for (let each = 0; each < 4; each++) got.push(await receive(receiver));
  const deferred = seenOf(got[3]).number;
  await settle(receiver, () => got[0].delivery.accept());
  await settle(receiver, () => got[1].delivery.modified({ delivery_failed: true, undeliverable_here: false }));
  const info = { DeadLetterReason: "bad", DeadLetterErrorDescription: "it is bad" };
  await settle(receiver, () => got[2].delivery.reject({ condition: DEAD_LETTER, info }));
  await settle(receiver, () => got[3].delivery.modified({ delivery_failed: true, undeliverable_here: true }));
  const again = await receive(receiver);
  await settle(receiver, () => again.delivery.accept());
  const dead = await receive(await openReceiver(connection, "orders/$DeadLetterQueue"));
  const { DeadLetterReason, DeadLetterErrorDescription } = dead.message.application_properties;
  return { sent, large, received: got.map(seenOf), again: seenOf(again), deferred, dead: seenOf(dead),
    reasons: [DeadLetterReason, DeadLetterErrorDescription] };
}

async function batches(connection) {
  const sender = await openSender(connection, "batches");
  const message = (id) => ({ message_id: id, body: rhea.message.data_section(Buffer.from(id)) });
  const encoded = ["j", "k"].map((id) => rhea.message.encode(message(id)));
  const envelope = { durable: true, message_id: "j", application_properties: { of: "the first" },
    body: rhea.message.data_sections(encoded) };
  const accepted = once(sender, "accepted");
  sender.send(rhea.message.encode(envelope), undefined, BATCH_FORMAT);
  await accepted;
  const receiver = await openReceiver(connection, "batches");
  const got = [await receive(receiver), await receive(receiver)];
  await settle(receiver, () => got[0].delivery.modified({ undeliverable_here: false })); // As Microsoft's client abandons.
  const again = await receive(receiver);
  for (const each of [got[1], again]) await settle(receiver, () => each.delivery.accept());
  return { received: got.map(seenOf), again: seenOf(again) };
}

async function scheduling(connection) {
  const ask = await asker(connection, "later/$management");
  const at = rhea.types.wrap_timestamp(Date.now() + 3600000);
  const one = (id) => ({ "message-id": id, message: rhea.message.encode(
    { message_id: id, message_annotations: { [SCHEDULED]: at }, body: rhea.message.data_section(Buffer.from(id)) }) });
  const scheduled = await ask("com.microsoft:schedule-message", { messages: [one("e"), one("f")] });
  const numbers = Array.from(scheduled.body["sequence-numbers"]);
  const cancel = { "sequence-numbers": rhea.types.wrap_array([numbers[1]], 0x81) };
  const cancelled = await ask("com.microsoft:cancel-scheduled-message", cancel);
  const refused = await ask("com.microsoft:cancel-scheduled-message", cancel);
  return { numbers, cancelled: cancelled.application_properties.statusCode,
    refused: refused.application_properties.errorCondition };
}

async function sessions(connection) {
  const sender = await openSender(connection, "sessions");
  const data = (text) => rhea.message.data_section(Buffer.from(text));
  for (const [id, group_id] of [["g", "one"], ["h", "two"], ["i", "one"]]) {
    await send(sender, { message_id: id, group_id, body: data(id) });
  }
  const receiver = await openReceiver(connection, "sessions", { [SESSION]: "one" });
  const got = [await receive(receiver), await receive(receiver)];
  for (const each of got) await settle(receiver, () => each.delivery.accept());
  const ask = await asker(connection, "sessions/$management");
  const kept = { "session-id": "one", "session-state": Buffer.from("kept") };
  await ask("com.microsoft:set-session-state", kept);
  const state = await ask("com.microsoft:get-session-state", { "session-id": "one" });
  const next = await openReceiver(connection, "sessions", { [SESSION]: null });
  const second = await connect();
  await authorize(second);
  const late = second.open_receiver({ source: { address: "sessions", filter: { [SESSION]: "one" } } });
  await once(late, "receiver_error");
  return { ids: got.map((each) => each.message.message_id), state: state.body["session-state"].toString(),
    next: next.remote.attach.source.filter[SESSION], taken: late.error.condition };
}

async function authorize(connection) {
  const ask = await asker(connection, "$cbs");
  const resource = `sb://localhost:${port}/`;
  const reply = await ask("put-token", signature(resource), { type: "jwt", name: resource });
  return reply.application_properties["status-code"];
}

async function main() {
  const connection = await connect();
  const token = await authorize(connection);
  const seen = { token, settling: await settling(connection),
    batches: await batches(connection), scheduling: await scheduling(connection),
    sessions: await sessions(connection) };
  console.log(JSON.stringify(seen));
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
