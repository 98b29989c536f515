// Package connect has the example of docs/connect.md. Environment: COSMOS_ENDPOINT, COSMOS_KEY.
package connect

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestAProgramConnects(t *testing.T) {
	if found := connected(context.Background(), os.Getenv("COSMOS_ENDPOINT"), os.Getenv("COSMOS_KEY")); !strings.Contains(found, `"customer":"ada"`) {
		t.Errorf("got %s", found)
	}
}

func connected(ctx context.Context, endpoint, key string) string {
	credential := must(azcosmos.NewKeyCredential(key))
	client := must(azcosmos.NewClientWithKey(endpoint, credential, nil))
	must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "shop"}, nil))
	shop := must(client.NewDatabase("shop"))
	customer := azcosmos.PartitionKeyDefinition{Paths: []string{"/customer"}}
	must(shop.CreateContainer(ctx, azcosmos.ContainerProperties{ID: "orders", PartitionKeyDefinition: customer}, nil))
	orders := must(shop.NewContainer("orders"))
	ada := azcosmos.NewPartitionKeyString("ada")
	must(orders.UpsertItem(ctx, ada, []byte(`{"id": "1", "customer": "ada"}`), nil))
	order := must(orders.ReadItem(ctx, ada, "1", nil)).Value
	fmt.Println(string(order))
	return string(order)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
