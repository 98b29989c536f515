// Call by call through azcosmos, on a local Cosmos whose containers have three physical partitions: what each gives, as the
// service's documentation has it.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

type walk struct {
	client   *azcosmos.Client
	database *azcosmos.DatabaseClient
	rows     *azcosmos.ContainerClient
}

type step struct {
	name string
	act  func(*testing.T, walk)
}

// status is a step that ends with a status.
func status(name string, expected int, call func(walk) error) step {
	return step{name, func(t *testing.T, w walk) {
		t.Helper()
		err := call(w)
		if expected < 300 && err != nil {
			t.Error(err)
		} else if expected >= 300 {
			expectStatus(t, err, expected)
		}
	}}
}

// rowsOf is a step with a query of one partition key, whose rows are as expected, in JSON.
func rowsOf(query, expected string, parameters ...azcosmos.QueryParameter) step {
	return step{query, func(t *testing.T, w walk) {
		t.Helper()
		options := azcosmos.QueryOptions{QueryParameters: parameters}
		found := all[any](t, w.rows.NewQueryItemsPager(query, azcosmos.NewPartitionKeyString("p"), &options))
		var wanted []any
		if err := json.Unmarshal([]byte(expected), &wanted); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(found, wanted) {
			t.Errorf("got %v, not %v", found, wanted)
		}
	}}
}

func refusedQuery(query, what string) step {
	return step{query, func(t *testing.T, w walk) {
		t.Helper()
		_, err := w.rows.NewQueryItemsPager(query, azcosmos.NewPartitionKeyString("p"), nil).NextPage(ctx)
		expectStatus(t, err, 400)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v does not say %q", err, what)
		}
	}}
}

var key = azcosmos.NewPartitionKeyString("p")

func document(id string, more string) []byte {
	return fmt.Appendf(nil, `{"id": %q, "pk": "p"%s}`, id, more)
}

func container(id string, paths ...string) azcosmos.ContainerProperties {
	definition := azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2}
	return azcosmos.ContainerProperties{ID: id, PartitionKeyDefinition: definition}
}

func batch(fill func(*azcosmos.TransactionalBatch), expected ...int32) func(*testing.T, walk) {
	return func(t *testing.T, w walk) {
		t.Helper()
		made := w.rows.NewTransactionalBatch(key)
		fill(&made)
		var statuses []int32
		for _, one := range must(w.rows.ExecuteTransactionalBatch(ctx, made, nil))(t).OperationResults {
			statuses = append(statuses, one.StatusCode)
		}
		if !reflect.DeepEqual(statuses, expected) {
			t.Errorf("got %v, not %v", statuses, expected)
		}
	}
}

func patched(id string, fill func(*azcosmos.PatchOperations)) func(walk) error {
	return func(w walk) error {
		operations := azcosmos.PatchOperations{}
		fill(&operations)
		_, err := w.rows.PatchItem(ctx, key, id, operations, nil)
		return err
	}
}

var outdated = azcore.ETag(`"outdated"`)
var ifOutdated = azcosmos.ItemOptions{IfMatchEtag: &outdated}
var inBatch = azcosmos.TransactionalBatchItemOptions{IfMatchETag: &outdated}

var resources = []step{
	status("a database is read", 200, func(w walk) error { _, err := w.database.Read(ctx, nil); return err }),
	status("a database is created once", 409, func(w walk) error {
		_, err := w.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: w.database.ID()}, nil)
		return err
	}),
	status("a name with a slash is refused", 400, func(w walk) error {
		_, err := w.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "a/b"}, nil)
		return err
	}),
	{"databases are queried", func(t *testing.T, w walk) {
		page := must(w.client.NewQueryDatabasesPager("SELECT * FROM d WHERE d.id = 'TestAWalk'", nil).NextPage(ctx))(t)
		if len(page.Databases) != 1 {
			t.Errorf("got %+v", page.Databases)
		}
	}},
	status("an absent database is 404", 404, func(w walk) error {
		absent, _ := w.client.NewDatabase("absent")
		_, err := absent.Read(ctx, nil)
		return err
	}),
	status("a container is created", 201, func(w walk) error {
		made := container("made", "/pk")
		ttl := int32(60)
		made.DefaultTimeToLive = &ttl
		made.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/email"}}}}
		_, err := w.database.CreateContainer(ctx, made, nil)
		return err
	}),
	status("a container is created once", 409, func(w walk) error {
		_, err := w.database.CreateContainer(ctx, container("made", "/pk"), nil)
		return err
	}),
	status("four levels of a key are refused", 400, func(w walk) error {
		_, err := w.database.CreateContainer(ctx, container("deep", "/a", "/b", "/c", "/d"), nil)
		return err
	}),
	{"a container is replaced", func(t *testing.T, w walk) {
		made := must(w.database.NewContainer("made"))(t)
		properties := must(made.Read(ctx, nil))(t).ContainerProperties
		ttl := int32(90)
		properties.DefaultTimeToLive = &ttl
		if read := must(made.Replace(ctx, *properties, nil))(t); *read.ContainerProperties.DefaultTimeToLive != 90 {
			t.Errorf("got %+v", read)
		}
	}},
	{"a container has an indexing policy", func(t *testing.T, w walk) {
		policy := must(w.rows.Read(ctx, nil))(t).ContainerProperties.IndexingPolicy
		if len(policy.IncludedPaths) != 1 || policy.IncludedPaths[0].Path != "/*" {
			t.Errorf("got %+v", policy)
		}
	}},
	{"containers are queried", func(t *testing.T, w walk) {
		page := must(w.database.NewQueryContainersPager("SELECT * FROM c ORDER BY c.id", nil).NextPage(ctx))(t)
		if len(page.Containers) != 2 || page.Containers[0].ID != "made" {
			t.Errorf("got %+v", page.Containers)
		}
	}},
	status("a container has a throughput", 200, func(w walk) error { _, err := w.rows.ReadThroughput(ctx, nil); return err }),
	status("a throughput below the minimum is refused", 400, func(w walk) error {
		_, err := w.rows.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(300), nil)
		return err
	}),
	status("a container is deleted", 204, func(w walk) error {
		made, _ := w.database.NewContainer("made")
		_, err := made.Delete(ctx, nil)
		return err
	}),
	status("an absent container is 404", 404, func(w walk) error {
		made, _ := w.database.NewContainer("made")
		_, err := made.Read(ctx, nil)
		return err
	}),
	status("an item of an absent container is 404", 404, func(w walk) error {
		made, _ := w.database.NewContainer("made")
		_, err := made.CreateItem(ctx, key, document("1", ""), nil)
		return err
	}),
	{"a wrong key is refused", func(t *testing.T, w walk) {
		credential := must(azcosmos.NewKeyCredential(base64.StdEncoding.EncodeToString([]byte("wrong"))))(t)
		stranger := must(azcosmos.NewClientWithKey(os.Getenv("COSMOS_ENDPOINT"), credential, nil))(t)
		_, err := must(stranger.NewDatabase(w.database.ID()))(t).Read(ctx, nil)
		if err == nil || !strings.Contains(err.Error(), "401 Unauthorized") { // The client wraps it as a text.
			t.Errorf("got %v", err)
		}
	}},
}

var items = []step{
	status("one is created", 201, func(w walk) error {
		_, err := w.rows.CreateItem(ctx, key, document("a", `, "n": 1, "tags": ["red", "blue"], "none": null`), nil)
		return err
	}),
	status("one is created once", 409, func(w walk) error { _, err := w.rows.CreateItem(ctx, key, document("a", ""), nil); return err }),
	status("the id is there again under another key", 201, func(w walk) error {
		_, err := w.rows.CreateItem(ctx, azcosmos.NewPartitionKeyString("q"), []byte(`{"id": "a", "pk": "q"}`), nil)
		return err
	}),
	status("an upsert creates", 201, func(w walk) error { _, err := w.rows.UpsertItem(ctx, key, document("b", `, "n": 2`), nil); return err }),
	{"an upsert replaces, and answers as asked", func(t *testing.T, w walk) {
		options := azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
		reply := must(w.rows.UpsertItem(ctx, key, document("b", `, "n": 3, "tags": []`), &options))(t)
		if reply.RawResponse.StatusCode != http.StatusOK || !strings.Contains(string(reply.Value), `"n":3`) {
			t.Errorf("got %d, %s", reply.RawResponse.StatusCode, reply.Value)
		}
	}},
	status("a third", 201, func(w walk) error {
		_, err := w.rows.CreateItem(ctx, key, document("c", `, "n": 5.5`), nil)
		return err
	}),
	status("an upsert obeys an outdated ETag", 412, func(w walk) error {
		_, err := w.rows.UpsertItem(ctx, key, document("b", ""), &ifOutdated)
		return err
	}),
	status("a replace obeys an outdated ETag", 412, func(w walk) error {
		_, err := w.rows.ReplaceItem(ctx, key, "b", document("b", ""), &ifOutdated)
		return err
	}),
	status("a delete obeys an outdated ETag", 412, func(w walk) error { _, err := w.rows.DeleteItem(ctx, key, "b", &ifOutdated); return err }),
	status("an absent one is not read", 404, func(w walk) error { _, err := w.rows.ReadItem(ctx, key, "absent", nil); return err }),
	status("an absent one is not replaced", 404, func(w walk) error {
		_, err := w.rows.ReplaceItem(ctx, key, "absent", document("absent", ""), nil)
		return err
	}),
	status("an absent one is not deleted", 404, func(w walk) error { _, err := w.rows.DeleteItem(ctx, key, "absent", nil); return err }),
	status("one of another key is refused", 400, func(w walk) error {
		_, err := w.rows.CreateItem(ctx, key, []byte(`{"id": "x", "pk": "other"}`), nil)
		return err
	}),
	status("one without an id is refused", 400, func(w walk) error { _, err := w.rows.CreateItem(ctx, key, []byte(`{"pk": "p"}`), nil); return err }),
	status("one of more than 2 MB is refused", 413, func(w walk) error {
		_, err := w.rows.CreateItem(ctx, key, document("x", `, "s": "`+strings.Repeat("x", 2<<20)+`"`), nil)
		return err
	}),
	status("a patch does it all", 200, patched("c", func(p *azcosmos.PatchOperations) {
		p.AppendAdd("/tags", []string{"x"})
		p.AppendSet("/set", true)
		p.AppendReplace("/set", "yes")
		p.AppendIncrement("/n", 1)
		p.AppendRemove("/set")
		p.SetCondition("FROM c WHERE c.n = 5.5")
	})),
	status("a patch obeys its condition", 412, patched("c", func(p *azcosmos.PatchOperations) {
		p.AppendIncrement("/n", 1)
		p.SetCondition("FROM c WHERE c.n > 100")
	})),
	status("a patch of what is not there is refused", 400, patched("c", func(p *azcosmos.PatchOperations) { p.AppendRemove("/absent") })),
	{"a reply has its charge and its session token", func(t *testing.T, w walk) {
		reply := must(w.rows.ReadItem(ctx, key, "a", nil))(t)
		if reply.RequestCharge < 1 || reply.SessionToken == nil || reply.ETag == "" {
			t.Errorf("got %+v", reply)
		}
	}},
	{"a token that is ahead is refused", func(t *testing.T, w walk) {
		ahead := "0:-1#999999,1:-1#999999,2:-1#999999"
		_, err := w.rows.ReadItem(ctx, key, "a", &azcosmos.ItemOptions{SessionToken: &ahead})
		expectStatus(t, err, 404)
	}},
}

var queries = []step{
	rowsOf("SELECT VALUE c.n FROM c WHERE c.n > @least ORDER BY c.n", "[3, 6.5]", azcosmos.QueryParameter{Name: "@least", Value: 1}),
	rowsOf("SELECT TOP 1 VALUE c.id FROM c ORDER BY c.n DESC", `["c"]`),
	rowsOf("SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 1 LIMIT 1", `["b"]`),
	rowsOf("SELECT VALUE COUNT(1) FROM c", "[3]"),
	rowsOf("SELECT c.pk, MAX(c.n) AS most FROM c GROUP BY c.pk", `[{"pk": "p", "most": 6.5}]`),
	rowsOf("SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(@ids, c.id) AND c.n BETWEEN 2 AND 4", `["b"]`,
		azcosmos.QueryParameter{Name: "@ids", Value: []string{"a", "b"}}),
	refusedQuery("SELEC * FROM c", "Syntax error"),
	refusedQuery("SELECT c.order FROM c", "reserved word"),
	refusedQuery("SELECT * FROM c ORDER BY c.n, c.id", "composite index"),
	refusedQuery("SELECT VALUE udf.f(c) FROM c", "user-defined"),
	{"index metrics", func(t *testing.T, w walk) {
		options := azcosmos.QueryOptions{PopulateIndexMetrics: true}
		page := must(w.rows.NewQueryItemsPager("SELECT * FROM c WHERE c.n = 1", key, &options).NextPage(ctx))(t)
		metrics := must(base64.StdEncoding.DecodeString(*page.IndexMetrics))(t)
		if !strings.Contains(string(metrics), "/n/?") {
			t.Errorf("got %s", metrics)
		}
	}},
	{"a page after a continuation", func(t *testing.T, w walk) {
		query, options := "SELECT VALUE c.id FROM c ORDER BY c.n", azcosmos.QueryOptions{PageSizeHint: 2}
		options.ContinuationToken = must(w.rows.NewQueryItemsPager(query, key, &options).NextPage(ctx))(t).ContinuationToken
		if rest := all[string](t, w.rows.NewQueryItemsPager(query, key, &options)); !reflect.DeepEqual(rest, []string{"c"}) {
			t.Errorf("got %v", rest)
		}
	}},
}

var batches = []step{
	{"every operation", batch(func(b *azcosmos.TransactionalBatch) {
		b.CreateItem(document("d", `, "n": 1`), nil)
		b.UpsertItem(document("e", ""), nil)
		b.ReplaceItem("e", document("e", `, "n": 2`), nil)
		operations := azcosmos.PatchOperations{}
		operations.AppendIncrement("/n", 1)
		b.PatchItem("d", operations, nil)
		b.ReadItem("d", nil)
		b.DeleteItem("e", nil)
	}, 201, 201, 200, 200, 200, 204)},
	{"a duplicate leaves nothing", batch(func(b *azcosmos.TransactionalBatch) {
		b.CreateItem(document("f", ""), nil)
		b.CreateItem(document("d", ""), nil)
	}, 424, 409)},
	{"an outdated ETag leaves nothing", batch(func(b *azcosmos.TransactionalBatch) {
		b.ReplaceItem("d", document("d", ""), &inBatch)
		b.DeleteItem("d", nil)
	}, 412, 424)},
	status("what was refused is not there", 404, func(w walk) error { _, err := w.rows.ReadItem(ctx, key, "f", nil); return err }),
	status("what was refused is still there", 200, func(w walk) error { _, err := w.rows.ReadItem(ctx, key, "d", nil); return err }),
	{"101 operations are refused", func(t *testing.T, w walk) {
		made := w.rows.NewTransactionalBatch(key)
		for n := range 101 {
			made.CreateItem(document(fmt.Sprint("m", n), ""), nil)
		}
		_, err := w.rows.ExecuteTransactionalBatch(ctx, made, nil)
		expectStatus(t, err, 400)
	}},
}

func TestAWalk(t *testing.T) {
	client, database := newDatabase(t)
	must(database.CreateContainer(ctx, container("rows", "/pk"), nil))(t)
	w := walk{client, database, must(database.NewContainer("rows"))(t)}
	for _, subject := range [][]step{resources, items, queries, batches} {
		for _, one := range subject {
			t.Run(one.name, func(t *testing.T) { one.act(t, w) })
		}
	}
}
