// An application of azcosmos, on a local Cosmos whose containers have three physical partitions.
// Environment: COSMOS_ENDPOINT, COSMOS_KEY.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

type row struct {
	ID string `json:"id"`
	PK string `json:"pk"`
	N  int    `json:"n"`
}

var ctx = context.Background()

func TestAContainerIsCreatedWithoutAVersionOfItsPartitionKey(t *testing.T) {
	rows := newRows(t)
	properties := must(rows.Read(ctx, nil))(t).ContainerProperties.PartitionKeyDefinition
	if properties.Version != 0 || properties.Kind != azcosmos.PartitionKeyKindHash {
		t.Errorf("got %+v", properties)
	}
}

func TestAHierarchicalKeyHasAVersion(t *testing.T) {
	_, database := newDatabase(t)
	key := azcosmos.PartitionKeyDefinition{Paths: []string{"/tenant", "/pk"}}
	_, err := database.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: key}, nil)
	expectStatus(t, err, 400)
	key.Version = 2
	must(database.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "c", PartitionKeyDefinition: key}, nil))(t)
}

func TestAQueryWithoutAKeyFindsTheRowsOfAllPartitions(t *testing.T) {
	rows := newRows(t)
	for n := range 12 {
		create(t, rows, row{ID: fmt.Sprint(n), PK: fmt.Sprint(n), N: n})
	}
	options := azcosmos.QueryOptions{PageSizeHint: 5}
	query := "SELECT VALUE c.n FROM c WHERE c.n > 1"
	found := all[int](t, rows.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &options))
	slices.Sort(found)
	if !reflect.DeepEqual(found, []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("got %v", found)
	}
	_, err := rows.NewQueryItemsPager("SELECT * FROM c ORDER BY c.n", azcosmos.NewPartitionKey(), nil).NextPage(ctx)
	expectStatus(t, err, 400) // The client asks for no plan, and merges nothing.
}

func TestOfConditionalWritesOneWins(t *testing.T) {
	rows, key := newRows(t), azcosmos.NewPartitionKeyString("p")
	etag := create(t, rows, row{ID: "a", PK: "p"})
	current := azcosmos.ItemOptions{IfMatchEtag: &etag}
	must(rows.ReplaceItem(ctx, key, "a", encoded(t, row{ID: "a", PK: "p", N: 1}), &current))(t)
	_, err := rows.ReplaceItem(ctx, key, "a", encoded(t, row{ID: "a", PK: "p", N: 2}), &current)
	expectStatus(t, err, 412)
}

func TestThroughputIsReadAndReplaced(t *testing.T) {
	rows := newRows(t)
	read := must(rows.ReadThroughput(ctx, nil))(t)
	if manual, ok := read.ThroughputProperties.ManualThroughput(); !ok || manual != 400 {
		t.Errorf("expected 400, got %d", manual)
	}
	must(rows.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(600), nil))(t)
	read = must(rows.ReadThroughput(ctx, nil))(t)
	if manual, _ := read.ThroughputProperties.ManualThroughput(); manual != 600 {
		t.Errorf("expected 600, got %d", manual)
	}
}

func newDatabase(t *testing.T) (*azcosmos.Client, *azcosmos.DatabaseClient) {
	credential := must(azcosmos.NewKeyCredential(os.Getenv("COSMOS_KEY")))(t)
	client := must(azcosmos.NewClientWithKey(os.Getenv("COSMOS_ENDPOINT"), credential, nil))(t)
	must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: t.Name()}, nil))(t)
	return client, must(client.NewDatabase(t.Name()))(t)
}

func newRows(t *testing.T) *azcosmos.ContainerClient {
	_, database := newDatabase(t)
	key := azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}}
	must(database.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "rows", PartitionKeyDefinition: key}, nil))(t)
	return must(database.NewContainer("rows"))(t)
}

func create(t *testing.T, rows *azcosmos.ContainerClient, one row) azcore.ETag {
	t.Helper()
	return must(rows.CreateItem(ctx, azcosmos.NewPartitionKeyString(one.PK), encoded(t, one), nil))(t).ETag
}

func all[T any](t *testing.T, pager *runtime.Pager[azcosmos.QueryItemsResponse]) []T {
	t.Helper()
	var found []T
	for pager.More() {
		for _, raw := range must(pager.NextPage(ctx))(t).Items {
			var one T
			if err := json.Unmarshal(raw, &one); err != nil {
				t.Fatal(err)
			}
			found = append(found, one)
		}
	}
	return found
}

func encoded(t *testing.T, one row) []byte {
	return must(json.Marshal(one))(t)
}

func expectStatus(t *testing.T, err error, status int) {
	t.Helper()
	var refused *azcore.ResponseError
	if !errors.As(err, &refused) || refused.StatusCode != status {
		t.Errorf("expected %d, got %v", status, err)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
