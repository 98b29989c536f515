// An application of azservicebus, on a local Service Bus with the queues `batches`, `failing` (three deliveries at most),
// `settled` and `sessions`. Environment: SERVICEBUS_CONNECTION.
package servicebus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

const soon = 5 * time.Second

func TestMessagesThatAreSentTogetherArriveOneByOne(t *testing.T) {
	client, ctx := newClient(t)
	sender := must(client.NewSender("batches", nil))(t)
	receiver := must(client.NewReceiverForQueue("batches", nil))(t)
	batch := must(sender.NewMessageBatch(ctx, nil))(t)
	for n := range 3 {
		check(t, batch.AddMessage(message(fmt.Sprint(n)), nil))
	}
	check(t, sender.SendMessageBatch(ctx, batch, nil))
	check(t, sender.SendMessage(ctx, message("3"), nil))
	found := receive(t, receiver, 4)
	expect(t, bodies(found), []string{"0", "1", "2", "3"})
	for _, one := range found {
		check(t, receiver.CompleteMessage(ctx, one, nil))
	}
	expect(t, len(must(receiver.PeekMessages(ctx, 10, nil))(t)), 0)
}

func TestAMessageThatIsAbandonedTooOftenIsADeadLetter(t *testing.T) {
	client, ctx := newClient(t)
	receiver := must(client.NewReceiverForQueue("failing", nil))(t)
	send(t, client, "failing", message("poison"))
	for failed := range 3 {
		found := receive(t, receiver, 1)[0]
		expect(t, found.DeliveryCount, uint32(failed+1)) // This client counts the delivery itself.
		check(t, receiver.AbandonMessage(ctx, found, &azservicebus.AbandonMessageOptions{
			PropertiesToModify: map[string]any{"tried": int64(failed)},
		}))
	}
	dead := receive(t, graves(t, client, "failing"), 1)[0]
	expect(t, *dead.DeadLetterReason, "MaxDeliveryCountExceeded")
	expect(t, dead.ApplicationProperties["tried"], any(int64(2)))
}

func TestMessagesAreDeferredAndDeadLetteredWithTheirReasons(t *testing.T) {
	client, ctx := newClient(t)
	receiver := must(client.NewReceiverForQueue("settled", nil))(t)
	send(t, client, "settled", message("a"))
	send(t, client, "settled", message("b"))
	found := receive(t, receiver, 2)
	check(t, receiver.RenewMessageLock(ctx, found[0], nil))
	check(t, receiver.DeferMessage(ctx, found[0], nil))
	deferred := must(receiver.ReceiveDeferredMessages(ctx, []int64{*found[0].SequenceNumber}, nil))(t)
	expect(t, bodies(deferred), []string{"a"})
	check(t, receiver.CompleteMessage(ctx, deferred[0], nil))
	reason, description := "bad", "it is bad"
	check(t, receiver.DeadLetterMessage(ctx, found[1], &azservicebus.DeadLetterOptions{
		Reason: &reason, ErrorDescription: &description, PropertiesToModify: map[string]any{"extra": "e"},
	}))
	dead := receive(t, graves(t, client, "settled"), 1)[0]
	expect(t, []string{*dead.DeadLetterReason, *dead.DeadLetterErrorDescription}, []string{"bad", "it is bad"})
	expect(t, dead.ApplicationProperties["extra"], any("e"))
}

func TestALockThatIsLostAndAnEntityThatThereIsNotAreTold(t *testing.T) {
	client, ctx := newClient(t)
	receiver := must(client.NewReceiverForQueue("settled", nil))(t)
	send(t, client, "settled", message("c"))
	found := receive(t, receiver, 1)[0]
	check(t, receiver.CompleteMessage(ctx, found, nil))
	expectCode(t, receiver.RenewMessageLock(ctx, found, nil), azservicebus.CodeLockLost)
	nowhere := must(client.NewSender("nowhere", nil))(t)
	err := nowhere.SendMessage(ctx, message("x"), nil)
	if err == nil || !strings.Contains(err.Error(), "amqp:not-found") {
		t.Errorf("expected amqp:not-found, got %v", err)
	}
}

func TestASessionGivesItsMessagesInOrderAndNobodyElse(t *testing.T) {
	client, ctx := newClient(t)
	for n, id := range []string{"even", "odd", "even", "odd"} {
		one := message(fmt.Sprint(n))
		one.SessionID = &id
		send(t, client, "sessions", one)
	}
	receiver := must(client.AcceptSessionForQueue(ctx, "sessions", "even", nil))(t)
	found := must(receiver.ReceiveMessages(ctx, 2, nil))(t)
	if len(found) < 2 {
		found = append(found, must(receiver.ReceiveMessages(ctx, 1, nil))(t)...)
	}
	expect(t, bodies(found), []string{"0", "2"})
	for _, one := range found {
		check(t, receiver.CompleteMessage(ctx, one, nil))
	}
	check(t, receiver.SetSessionState(ctx, []byte("done"), nil))
	expect(t, string(must(receiver.GetSessionState(ctx, nil))(t)), "done")
	check(t, receiver.RenewSessionLock(ctx, nil))
	check(t, receiver.Close(ctx))
}

func newClient(t *testing.T) (*azservicebus.Client, context.Context) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	client := must(azservicebus.NewClientFromConnectionString(os.Getenv("SERVICEBUS_CONNECTION"), &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	}))(t)
	t.Cleanup(func() {
		client.Close(ctx)
		cancel()
	})
	return client, ctx
}

func message(body string) *azservicebus.Message {
	return &azservicebus.Message{Body: []byte(body), MessageID: &body}
}

func send(t *testing.T, client *azservicebus.Client, queue string, one *azservicebus.Message) {
	t.Helper()
	sender := must(client.NewSender(queue, nil))(t)
	check(t, sender.SendMessage(context.Background(), one, nil))
	check(t, sender.Close(context.Background()))
}

func graves(t *testing.T, client *azservicebus.Client, queue string) *azservicebus.Receiver {
	options := &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter}
	return must(client.NewReceiverForQueue(queue, options))(t)
}

func receive(t *testing.T, receiver *azservicebus.Receiver, most int) []*azservicebus.ReceivedMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	var found []*azservicebus.ReceivedMessage
	for len(found) < most {
		found = append(found, must(receiver.ReceiveMessages(ctx, most-len(found), nil))(t)...)
	}
	return found
}

func bodies(messages []*azservicebus.ReceivedMessage) []string {
	var found []string
	for _, one := range messages {
		found = append(found, string(one.Body))
	}
	return found
}

func expect[T any](t *testing.T, found, expected T) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Errorf("expected %v, got %v", expected, found)
	}
}

func expectCode(t *testing.T, err error, code azservicebus.Code) {
	t.Helper()
	var refused *azservicebus.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("expected %s, got %v", code, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return value
	}
}
