// Call by call through @azure/cosmos, on a local Cosmos whose containers have three physical partitions: what each gives,
// as the service's documentation has it. Environment: COSMOS_ENDPOINT, COSMOS_KEY.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { ChangeFeedStartFrom, CosmosClient, PartitionKeyKind, StatusCodes } from "@azure/cosmos";

const endpoint = process.env.COSMOS_ENDPOINT;
const client = new CosmosClient({ endpoint, key: process.env.COSMOS_KEY });
const ITEMS = Array.from({ length: 20 }, (_, n) => ({
  id: `${n}`, pk: `p${n % 5}`, n, name: `name ${n}`, tags: n % 2 ? ["odd"] : ["even", `${n}`], place: { x: n, y: null },
}));
let database;
let rows;

const all = async (iterator) => (await iterator.fetchAll()).resources;
const ask = (query, parameters = [], options = {}) => all(rows.items.query({ query, parameters }, options));
const refused = (promise, code, message = /./) => assert.rejects(promise, { code, message });
const bulk = async (operations) => (await rows.items.executeBulkOperations(operations)).map((one) =>
  one.response?.statusCode ?? one.error?.code);
const feed = async (changeFeedStartFrom, maxItemCount) => {
  const iterator = rows.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount });
  const found = [];
  for (let idle = 0; idle < 3;) {
    const page = await iterator.readNext();
    idle = page.statusCode === StatusCodes.NotModified ? idle + 1 : 0;
    found.push(...(page.result ?? []).map((one) => one.id));
  }
  return found;
};

before(async () => {
  ({ database } = await client.databases.create({ id: "walk" }));
  ({ container: rows } = await database.containers.create({ id: "rows", partitionKey: "/pk", defaultTtl: -1 }));
  for (const item of ITEMS) await rows.items.create(item);
});

const DATABASES = {
  "one is read": async () => assert.equal((await database.read()).resource.id, "walk"),
  "one that is there is not created again": async () => refused(client.databases.create({ id: "walk" }), 409),
  "one is created where there is none": async () =>
    assert.equal((await client.databases.createIfNotExists({ id: "walk" })).statusCode, 200),
  "all are listed": async () =>
    assert.ok((await all(client.databases.readAll())).some((one) => one.id === "walk")),
  "one is found by a query": async () =>
    assert.equal((await all(client.databases.query("SELECT VALUE d.id FROM d WHERE d.id = 'walk'")))[0], "walk"),
  "an absent one is not read": async () => refused(client.database("absent").read(), 404),
  "a throughput is read": async () => {
    const made = await client.databases.create({ id: "walk-paid", throughput: 500 });
    assert.equal((await made.database.readOffer()).resource.content.offerThroughput, 500);
  },
  "one is deleted": async () => assert.equal((await client.database("walk-paid").delete()).statusCode, 204),
  "the account is read": async () =>
    assert.equal((await client.getDatabaseAccount()).resource.consistencyPolicy, "Session"),
};

const CONTAINERS = {
  "one is read": async () => assert.equal((await rows.read()).resource.defaultTtl, -1),
  "one gets the default indexing policy": async () =>
    assert.deepEqual((await rows.read()).resource.indexingPolicy.includedPaths, [{ path: "/*" }]),
  "one that is there is not created again": async () =>
    refused(database.containers.create({ id: "rows", partitionKey: "/pk" }), 409),
  "all are listed": async () =>
    assert.deepEqual((await all(database.containers.readAll())).map((one) => one.id), ["rows"]),
  "they are found by a query": async () =>
    assert.deepEqual(await all(database.containers.query("SELECT VALUE r.id FROM r")), ["rows"]),
  "the time to live is replaced": async () => {
    const { container } = await database.containers.create({ id: "other", partitionKey: "/pk" });
    const { resource } = await container.read();
    assert.equal((await container.replace({ ...resource, defaultTtl: 60 })).resource.defaultTtl, 60);
  },
  "the partition key is not replaced": async () => {
    const { resource } = await database.container("other").read();
    await refused(database.container("other").replace({ ...resource, partitionKey: { paths: ["/x"] } }), 400);
  },
  "the usage is told": async () =>
    assert.match((await rows.read({ populateQuotaInfo: true })).headers["x-ms-resource-usage"], /documentsCount=20;/),
  "the physical partitions are listed": async () => assert.equal((await rows.getFeedRanges()).length, 3),
  "conflicts are listed": async () => assert.deepEqual(await all(rows.conflicts.readAll()), []),
  "an absent one is not read": async () => refused(database.container("absent").read(), 404),
  "one is deleted": async () => assert.equal((await database.container("other").delete()).statusCode, 204),
  "a stored procedure is refused": async () =>
    refused(rows.scripts.storedProcedures.create({ id: "s", body: "function () {}" }), 404, /sprocs/),
  "a trigger is refused": async () => refused(all(rows.scripts.triggers.readAll()), 404, /triggers/),
  "a key of three levels leads to its item": async () => {
    const partitionKey = { paths: ["/a", "/b", "/c"], kind: PartitionKeyKind.MultiHash, version: 2 };
    const { container } = await database.containers.create({ id: "levels", partitionKey });
    await container.items.create({ id: "1", a: "x", b: 2, c: true });
    assert.equal((await container.item("1", ["x", 2, true]).read()).resource.a, "x");
    const below = container.items.query("SELECT VALUE c.id FROM c", { partitionKey: ["x"] });
    assert.deepEqual(await all(below), ["1"]);
  },
  "a unique key is taken once": async () => {
    const uniqueKeyPolicy = { uniqueKeys: [{ paths: ["/email"] }] };
    const { container } = await database.containers.create({ id: "people", partitionKey: "/pk", uniqueKeyPolicy });
    await container.items.create({ id: "1", pk: "p", email: "a@b.c" });
    await refused(container.items.create({ id: "2", pk: "p", email: "a@b.c" }), 409);
  },
};

const POINTS = {
  "one without an id gets one": async () => assert.ok((await rows.items.create({ pk: "points" })).resource.id),
  "one is there once for a key": async () => refused(rows.items.create({ id: "0", pk: "p0" }), 409),
  "an upsert creates": async () => assert.equal((await rows.items.upsert({ id: "a", pk: "points" })).statusCode, 201),
  "an upsert replaces": async () => assert.equal((await rows.items.upsert({ id: "a", pk: "points" })).statusCode, 200),
  "an absent one is 404": async () => assert.equal((await rows.item("absent", "p0").read()).statusCode, 404),
  "an absent one is not replaced": async () => refused(rows.item("b", "points").replace({ id: "b", pk: "points" }), 404),
  "an absent one is not deleted": async () => refused(rows.item("b", "points").delete(), 404),
  "one is patched": async () => {
    const operations = [
      { op: "add", path: "/list", value: [1] }, { op: "add", path: "/list/-", value: 2 }, { op: "set", path: "/n", value: 1 },
      { op: "incr", path: "/n", value: 2 }, { op: "replace", path: "/list/0", value: "one" }, { op: "move", from: "/n", path: "/m" },
    ];
    const { list, m, n } = (await rows.item("a", "points").patch(operations)).resource;
    assert.deepEqual([list, m, n], [["one", 2], 3, undefined]);
  },
  "a patch obeys its condition": async () =>
    refused(rows.item("a", "points").patch({ condition: "FROM c WHERE c.m > 3", operations: [{ op: "remove", path: "/m" }] }), 412),
  "a patch of what is not there is refused": async () =>
    refused(rows.item("a", "points").patch([{ op: "remove", path: "/none" }]), 400),
  "an upsert obeys an ETag": async () => {
    const { etag } = await rows.item("a", "points").read();
    const accessCondition = { type: "IfMatch", condition: etag };
    assert.equal((await rows.items.upsert({ id: "a", pk: "points", m: 3 }, { accessCondition })).statusCode, 200);
    await refused(rows.items.upsert({ id: "a", pk: "points" }, { accessCondition }), 412);
  },
  "one that is as known is not sent again": async () => {
    const { etag } = await rows.item("a", "points").read();
    const accessCondition = { type: "IfNoneMatch", condition: etag };
    assert.equal((await rows.item("a", "points").read({ accessCondition })).statusCode, 304);
  },
  "one of another key is refused": async () =>
    refused(rows.item("a", "points").replace({ id: "a", pk: "elsewhere" }), 400),
  "one of more than 2 MB is refused": async () =>
    refused(rows.items.create({ pk: "points", text: "x".repeat(2 * 1024 * 1024) }), 413),
  "a negative time to live is refused": async () => refused(rows.items.create({ pk: "points", ttl: -2 }), 400),
  "every reply has its charge and its session token": async () => {
    const { headers } = await rows.item("0", "p0").read();
    assert.ok(Number(headers["x-ms-request-charge"]) >= 1);
    assert.match(headers["x-ms-session-token"], /^\d:/);
  },
  "a client with a wrong key is refused": async () => {
    const stranger = new CosmosClient({ endpoint, key: Buffer.from("wrong").toString("base64") });
    await refused(stranger.database("walk").read(), 401);
  },
};

const QUERIES = {
  "parameters of every type": async () =>
    assert.deepEqual(await ask("SELECT VALUE [@a, @b, @c] FROM c WHERE c.id = @id",
      [["@a", 1.5], ["@b", null], ["@c", { d: [true] }], ["@id", "3"]].map(([name, value]) => ({ name, value }))),
    [[1.5, null, { d: [true] }]]),
  "one partition key": async () =>
    assert.deepEqual(await ask("SELECT VALUE c.n FROM c ORDER BY c.n", [], { partitionKey: "p1" }), [1, 6, 11, 16]),
  "pages": async () => {
    const iterator = rows.items.query("SELECT VALUE c.n FROM c WHERE IS_DEFINED(c.n) ORDER BY c.n", { maxItemCount: 6 });
    const pages = [];
    while (iterator.hasMoreResults()) pages.push((await iterator.fetchNext()).resources ?? []);
    assert.ok(pages.length >= 4);
    assert.deepEqual(pages.flat(), ITEMS.map((one) => one.n));
  },
  "a page after a continuation": async () => {
    const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
    const first = await rows.items.query(query, { partitionKey: "p1", maxItemCount: 3 }).fetchNext();
    const { continuationToken } = first;
    const rest = await all(rows.items.query(query, { partitionKey: "p1", maxItemCount: 3, continuationToken }));
    assert.deepEqual([...first.resources, ...rest], [1, 6, 11, 16]);
  },
  "a join": async () => assert.deepEqual(
    (await ask("SELECT c.n, t FROM c JOIN t IN c.tags WHERE t != 'even' AND t != 'odd'")).map((one) => `${one.n}`).sort(),
    ITEMS.filter((one) => one.n % 2 === 0).map((one) => one.id).sort()),
  "a descending order with a limit": async () =>
    assert.deepEqual(await ask("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n DESC"), [19, 18, 17]),
  "an offset": async () => assert.deepEqual(await ask("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 17 LIMIT 5"), [17, 18, 19]),
  "distinct values": async () =>
    assert.deepEqual((await ask("SELECT DISTINCT VALUE c.pk FROM c WHERE STARTSWITH(c.pk, 'p') AND c.n >= 0")).sort(), ["p0", "p1", "p2", "p3", "p4"]),
  "a sum, a minimum and a maximum": async () => assert.deepEqual(
    [await ask("SELECT VALUE SUM(c.n) FROM c"), await ask("SELECT VALUE MIN(c.n) FROM c"), await ask("SELECT VALUE MAX(c.n) FROM c")],
    [[190], [0], [19]]),
  "groups": async () => {
    const groups = await ask("SELECT c.pk, COUNT(1) AS k, AVG(c.n) AS mean FROM c WHERE c.n >= 0 GROUP BY c.pk");
    assert.deepEqual(groups.sort((one, other) => (one.pk < other.pk ? -1 : 1))[4], { pk: "p4", k: 4, mean: 11.5 });
    assert.deepEqual(await ask("SELECT COUNT(1) AS k, SUM(c.n) AS sum FROM c WHERE c.n >= 0"), [{ k: 20, sum: 190 }]);
  },
  "metrics": async () => {
    const options = { partitionKey: "p1", populateQueryMetrics: true, populateIndexMetrics: true };
    const page = await rows.items.query("SELECT * FROM c WHERE c.n = 6", options).fetchNext();
    const [metrics] = Object.values(page.headers["x-ms-documentdb-query-metrics"]);
    assert.equal(metrics.outputDocumentCount, 1);
  },
  "a syntax error is refused": async () => refused(ask("SELEC * FROM c", [], { partitionKey: "p1" }), 400),
  "a reserved word is refused": async () => refused(ask("SELECT c.order FROM c", [], { partitionKey: "p1" }), 400, /reserved/),
  "an order without its index is refused": async () =>
    refused(ask("SELECT * FROM c ORDER BY c.n, c.name", [], { partitionKey: "p1" }), 400, /composite index/),
  "a user-defined function is refused": async () =>
    refused(ask("SELECT VALUE udf.f(c) FROM c", [], { partitionKey: "p1" }), 400, /user-defined/),
};

const pk = "writes";
const body = (id, more = {}) => ({ id, pk, ...more });
const WRITES = {
  "a batch of every operation": async () => {
    const done = await rows.items.batch([
      { operationType: "Create", resourceBody: body("a", { n: 1 }) }, { operationType: "Upsert", resourceBody: body("b") },
      { operationType: "Patch", id: "a", resourceBody: { operations: [{ op: "incr", path: "/n", value: 1 }] } },
      { operationType: "Read", id: "a" }, { operationType: "Replace", id: "b", resourceBody: body("b", { n: 3 }) },
      { operationType: "Delete", id: "a" }], pk);
    assert.deepEqual(done.result.map((one) => one.statusCode), [201, 201, 200, 200, 200, 204]);
    assert.equal(done.result[3].resourceBody.n, 2);
  },
  "a batch with an outdated ETag": async () => {
    const done = await rows.items.batch([{ operationType: "Create", resourceBody: body("c") },
      { operationType: "Replace", id: "b", resourceBody: body("b"), ifMatch: '"outdated"' }], pk);
    assert.deepEqual([done.code, done.result.map((one) => one.statusCode)], [207, [424, 412]]);
    assert.equal((await rows.item("c", pk).read()).statusCode, 404);
  },
  "a batch of 101 is refused": async () => {
    const many = Array.from({ length: 101 }, (_, n) => ({ operationType: "Create", resourceBody: body(`m${n}`) }));
    await assert.rejects(rows.items.batch(many, pk));
    assert.equal((await rows.item("m0", pk).read()).statusCode, 404);
  },
  "a bulk of every operation": async () => {
    assert.deepEqual(await bulk([1, 2, 3].map((n) =>
      ({ operationType: "Create", partitionKey: `bulk${n}`, resourceBody: { id: `${n}`, pk: `bulk${n}` } }))), [201, 201, 201]);
    assert.deepEqual(await bulk([
      { operationType: "Read", id: "1", partitionKey: "bulk1" },
      { operationType: "Upsert", partitionKey: "bulk2", resourceBody: { id: "2", pk: "bulk2", n: 1 } },
      { operationType: "Patch", id: "3", partitionKey: "bulk3", resourceBody: { operations: [{ op: "add", path: "/n", value: 1 }] } },
    ]), [200, 200, 200]);
  },
  "a bulk of deletes": async () => assert.deepEqual(
    await bulk([1, 2, 3].map((n) => ({ operationType: "Delete", id: `${n}`, partitionKey: `bulk${n}` }))), [204, 204, 204]),
  "a bulk tells of each operation": async () => assert.deepEqual(
    await bulk([{ operationType: "Create", partitionKey: pk, resourceBody: body("b") },
      { operationType: "Delete", id: "absent", partitionKey: pk }]), [409, 404]),
};

const FEEDS = {
  "from the beginning": async () => {
    const ids = await feed(ChangeFeedStartFrom.Beginning());
    assert.deepEqual(ITEMS.filter((one) => !ids.includes(one.id)), []);
    assert.equal(new Set(ids).size, ids.length);
  },
  "in pages": async () => assert.ok((await feed(ChangeFeedStartFrom.Beginning(), 3)).length >= ITEMS.length),
  "of a key": async () =>
    assert.deepEqual(await feed(ChangeFeedStartFrom.Beginning("p2")), ["2", "7", "12", "17"]),
  "of a range": async () => {
    const parts = [];
    for (const range of await rows.getFeedRanges()) parts.push(...await feed(ChangeFeedStartFrom.Beginning(range)));
    assert.equal(parts.length, (await feed(ChangeFeedStartFrom.Beginning())).length);
  },
  "from now on, and after a continuation": async () => {
    const iterator = rows.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Now("p3") });
    const { statusCode, continuationToken } = await iterator.readNext();
    assert.equal(statusCode, StatusCodes.NotModified);
    await rows.item("8", "p3").patch([{ op: "set", path: "/changed", value: true }]);
    assert.deepEqual(await feed(ChangeFeedStartFrom.Continuation(continuationToken)), ["8"]);
  },
};

for (const [subject, steps] of Object.entries({ DATABASES, CONTAINERS, POINTS, QUERIES, WRITES, FEEDS }))
  for (const [name, step] of Object.entries(steps)) test(`${subject.toLowerCase()}: ${name}`, step);
