// An application of @azure/cosmos, on a local Cosmos whose containers have three physical partitions.
// Environment: COSMOS_ENDPOINT, COSMOS_KEY.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { CosmosClient, PartitionKeyDefinitionVersion, PartitionKeyKind } from "@azure/cosmos";

const client = new CosmosClient({ endpoint: process.env.COSMOS_ENDPOINT, key: process.env.COSMOS_KEY });
const LONG = "x".repeat(150);
const KEYS = ["", "a", "b", "c", "é".repeat(60), LONG, 0, 1, -1.5, 4294967296, 0.1, true, false, null];
let database;
let rows;

before(async () => {
  ({ database } = await client.databases.createIfNotExists({ id: "javascript" }));
  ({ container: rows } = await database.containers.create({ id: "rows", partitionKey: "/pk" }));
  for (let n = 0; n < 12; n++) await rows.items.create({ id: `${n}`, pk: `p${n}`, n });
});

test("a container is created without a version of its partition key", async () => {
  const { resource } = await rows.read();
  assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash" });
  const { container } = await database.containers.createIfNotExists({ id: "rows", partitionKey: { paths: ["/pk"] } });
  assert.equal((await container.item("3", "p3").read()).resource.n, 3);
});

for (const [name, version] of [["absent", undefined], ["1", 1], ["2", PartitionKeyDefinitionVersion.V2]]) {
  test(`keys of every kind lead to their items where the version is ${name}`, async () => {
    const partitionKey = { paths: ["/pk"], kind: PartitionKeyKind.Hash, version };
    const { container } = await database.containers.create({ id: `keys-${name}`, partitionKey });
    const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
    assert.equal(ranges.length, 3);
    const written = await container.items.bulk(
      KEYS.map((pk, n) => ({ operationType: "Create", resourceBody: { id: `${n}`, pk } })));
    assert.deepEqual(written.map((one) => one.statusCode), KEYS.map(() => 201));
    for (const [n, pk] of KEYS.entries()) {
      assert.equal((await container.item(`${n}`, pk).read()).statusCode, 200, `${pk}`);
      const found = await container.items.query("SELECT VALUE c.id FROM c", { partitionKey: pk }).fetchAll();
      assert.deepEqual(found.resources, [`${n}`]);
    }
    const all = (await container.items.readAll().fetchAll()).resources;
    assert.equal(all.length, KEYS.length);
  });
}

test("throughput is read and replaced", async () => {
  const { container } = await database.containers.create({ id: "measured", partitionKey: "/pk", throughput: 500 });
  const { resource: offer } = await container.readOffer();
  assert.equal(offer.content.offerThroughput, 500);
  const { resource } = await client.offer(offer.id).replace({ ...offer, content: { ...offer.content, offerThroughput: 600 } });
  assert.equal(resource.content.offerThroughput, 600);
});

test("all items of a partition key are deleted at once", async () => {
  const { container } = await database.containers.create({ id: "cleared", partitionKey: "/pk" });
  for (const [id, pk] of [["1", "a"], ["2", "a"], ["1", "b"]]) await container.items.create({ id, pk });
  await container.deleteAllItemsForPartitionKey("a");
  assert.deepEqual((await container.items.readAll().fetchAll()).resources.map((one) => one.pk), ["b"]);
});

test("a query that needs no plan follows the partitions", async () => {
  const spec = { query: "SELECT VALUE c.id FROM c WHERE c.n >= @least", parameters: [{ name: "@least", value: 9 }] };
  assert.deepEqual((await rows.items.query(spec).fetchAll()).resources.sort(), ["10", "11", "9"]);
});

test("a replace may give another id", async () => {
  await rows.items.create({ id: "old", pk: "ids" });
  await rows.items.create({ id: "taken", pk: "ids" });
  await assert.rejects(rows.item("old", "ids").replace({ id: "taken", pk: "ids" }), { code: 409 });
  assert.equal((await rows.item("old", "ids").replace({ id: "new", pk: "ids" })).statusCode, 200);
  assert.equal((await rows.item("old", "ids").read()).statusCode, 404);
  assert.equal((await rows.item("new", "ids").read()).statusCode, 200);
});

test("bulk goes on after a failure or stops, as it is told", async () => {
  const create = (id) => ({ operationType: "Create", resourceBody: { id, pk: "bulk" } });
  await rows.items.create({ id: "there", pk: "bulk" });
  const statuses = async (id, continueOnError) =>
    (await rows.items.bulk([create("there"), create(id)], { continueOnError })).map((one) => one.statusCode);
  assert.deepEqual(await statuses("a", true), [409, 201]);
  assert.deepEqual(await statuses("b", false), [409, 424]);
  assert.equal((await rows.item("b", "bulk").read()).statusCode, 404);
});

test("a part of a container that is not supported is refused by name", async () => {
  const partitionKey = "/pk";
  for (const [name, value] of [["fullTextPolicy", { defaultLanguage: "en-US" }],
    ["vectorEmbeddingPolicy", { vectorEmbeddings: [] }]]) {
    const refused = database.containers.create({ id: "parts", partitionKey, [name]: value });
    await assert.rejects(refused, { code: 400, message: new RegExp(name) });
  }
});
