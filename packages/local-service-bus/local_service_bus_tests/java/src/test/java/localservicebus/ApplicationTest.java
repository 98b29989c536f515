package localservicebus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** With the queues {@code batches}, {@code failing} (three deliveries at most), {@code settled} and {@code sessions}. */
class ApplicationTest {
    private static final Duration SOON = Duration.ofSeconds(5);

    @Test
    void messages_that_are_sent_together_arrive_one_by_one() {
        try (ServiceBusSenderClient sender = sender("batches"); ServiceBusReceiverClient receiver = receiver("batches")) {
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            batch.tryAddMessage(new ServiceBusMessage("0"));
            batch.tryAddMessage(new ServiceBusMessage("1"));
            sender.sendMessages(batch);
            sender.sendMessage(new ServiceBusMessage("2"));
            List<ServiceBusReceivedMessage> found = receive(receiver, 3);
            assertEquals(List.of("0", "1", "2"), bodies(found));
            found.forEach(receiver::complete);
            assertNull(receiver.peekMessage());
        }
    }

    @Test
    void a_message_that_is_abandoned_too_often_is_a_dead_letter() {
        try (ServiceBusSenderClient sender = sender("failing"); ServiceBusReceiverClient receiver = receiver("failing")) {
            sender.sendMessage(new ServiceBusMessage("poison"));
            for (int failed = 0; failed < 3; failed++) {
                ServiceBusReceivedMessage found = receive(receiver, 1).get(0);
                assertEquals(failed, found.getDeliveryCount());
                receiver.abandon(found, new AbandonOptions().setPropertiesToModify(Map.of("tried", failed)));
            }
        }
        try (ServiceBusReceiverClient graves = graves("failing")) {
            ServiceBusReceivedMessage dead = receive(graves, 1).get(0);
            assertEquals("MaxDeliveryCountExceeded", dead.getDeadLetterReason());
            assertEquals(2, dead.getApplicationProperties().get("tried"));
            graves.complete(dead);
        }
    }

    @Test
    void messages_are_deferred_and_dead_lettered_with_their_reasons() {
        try (ServiceBusSenderClient sender = sender("settled"); ServiceBusReceiverClient receiver = receiver("settled")) {
            sender.sendMessages(List.of(new ServiceBusMessage("a"), new ServiceBusMessage("b")));
            List<ServiceBusReceivedMessage> found = receive(receiver, 2);
            receiver.renewMessageLock(found.get(0));
            receiver.defer(found.get(0));
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(found.get(0).getSequenceNumber());
            assertEquals("a", deferred.getBody().toString());
            receiver.complete(deferred);
            receiver.deadLetter(found.get(1), new DeadLetterOptions()
                .setDeadLetterReason("bad").setDeadLetterErrorDescription("it is bad")
                .setPropertiesToModify(Map.of("extra", "e")));
        }
        try (ServiceBusReceiverClient graves = graves("settled")) {
            ServiceBusReceivedMessage dead = receive(graves, 1).get(0);
            assertEquals("bad", dead.getDeadLetterReason());
            assertEquals("it is bad", dead.getDeadLetterErrorDescription());
            assertEquals("e", dead.getApplicationProperties().get("extra"));
            graves.complete(dead);
        }
    }

    @Test
    void an_entity_that_there_is_not_is_not_found() {
        try (ServiceBusSenderClient sender = sender("nowhere")) {
            ServiceBusException refused =
                assertThrows(ServiceBusException.class, () -> sender.sendMessage(new ServiceBusMessage("x")));
            assertEquals(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, refused.getReason());
        }
    }

    @Test
    void a_session_gives_its_messages_in_order_and_nobody_else() {
        try (ServiceBusSenderClient sender = sender("sessions");
            var accepting = builder().sessionReceiver().queueName("sessions").buildClient()) {
            for (int n = 0; n < 4; n++) {
                sender.sendMessage(new ServiceBusMessage("" + n).setSessionId(n % 2 == 0 ? "even" : "odd"));
            }
            try (ServiceBusReceiverClient receiver = accepting.acceptSession("even")) {
                List<ServiceBusReceivedMessage> found = receive(receiver, 2);
                assertEquals(List.of("0", "2"), bodies(found));
                found.forEach(receiver::complete);
                receiver.setSessionState("done".getBytes());
                assertEquals("done", new String(receiver.getSessionState()));
            }
        }
    }

    private static ServiceBusClientBuilder builder() {
        return new ServiceBusClientBuilder().connectionString(System.getProperty("connection"))
            .retryOptions(new AmqpRetryOptions().setMaxRetries(0));
    }

    private static ServiceBusSenderClient sender(String queue) {
        return builder().sender().queueName(queue).buildClient();
    }

    private static ServiceBusReceiverClient receiver(String queue) {
        return builder().receiver().queueName(queue).disableAutoComplete().buildClient();
    }

    private static ServiceBusReceiverClient graves(String queue) {
        return builder().receiver().queueName(queue).subQueue(SubQueue.DEAD_LETTER_QUEUE).disableAutoComplete().buildClient();
    }

    private static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient receiver, int most) {
        List<ServiceBusReceivedMessage> found = new ArrayList<>();
        while (found.size() < most) {
            receiver.receiveMessages(most - found.size(), SOON).forEach(found::add);
        }
        return found;
    }

    private static List<String> bodies(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(one -> one.getBody().toString()).toList();
    }
}
