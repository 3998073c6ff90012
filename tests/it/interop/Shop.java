import java.nio.charset.StandardCharsets;
import java.time.*;
import java.util.*;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.*;

/** Fills the topics of a small shop: three days of orders, payments in transactions, customers by key. Usage: Shop HOST:PORT */
public class Shop {
    static final Random RANDOM = new Random(20260301);
    static final String[] CITIES = {"Bergen", "Brno", "Cádiz", "Gdańsk", "Lyon", "Malmö", "Porto", "Turku"};
    static final String[] ITEMS = {"kettle", "lamp", "notebook", "rucksack", "teapot", "umbrella"};
    /** Midnight three days ago, so that no record is older than the segments' week. */
    static final long BEGIN = LocalDate.now(ZoneOffset.UTC).minusDays(3).atStartOfDay().toInstant(ZoneOffset.UTC).toEpochMilli();
    static final long HOUR = 3_600_000;

    public static void main(String[] args) throws Exception {
        orders(args[0]);
        customers(args[0]);
        payments(args[0]);
        billing(args[0]);
    }

    static KafkaProducer<String, String> producer(String address, String codec, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", address, "compression.type", codec,
            "linger.ms", 600_000, "batch.size", 8192, "max.block.ms", 60_000, "delivery.timeout.ms", 700_000));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static ProducerRecord<String, String> record(String topic, int partition, long time, String key, String value) {
        return new ProducerRecord<>(topic, partition, time, key, value);
    }

    static String customer(int number) {
        return "customer-" + (100 + number);
    }

    /** One batch each quarter of a day: an idempotent producer with zstd, headers on every record. */
    static void orders(String address) throws Exception {
        try (var producer = producer(address, "zstd", Map.of("client.id", "web"))) {
            for (int slot = 0, order = 1001; slot < 12; slot++) {
                for (int i = 0; i < 18; i++, order++) {
                    long time = BEGIN + slot * 6 * HOUR + i * 19 * 60_000 + RANDOM.nextInt(60_000);
                    int customer = RANDOM.nextInt(24);
                    String item = ITEMS[RANDOM.nextInt(ITEMS.length)];
                    int quantity = 1 + RANDOM.nextInt(3);
                    String value = "{\"order\":%d,\"customer\":\"%s\",\"item\":\"%s\",\"quantity\":%d,\"total\":\"%d.%02d\"}"
                        .formatted(order, customer(customer), item, quantity, quantity * (5 + RANDOM.nextInt(60)), RANDOM.nextInt(100));
                    var record = record("orders", customer % 2, time, customer(customer), value);
                    record.headers().add(new RecordHeader("channel", (RANDOM.nextInt(4) == 0 ? "phone" : "web").getBytes()));
                    if (RANDOM.nextInt(10) == 0) record.headers().add(new RecordHeader("voucher", null));
                    producer.send(record);
                }
                producer.flush();
            }
        }
    }

    /** Profiles by key with updates and tombstones, uncompressed. */
    static void customers(String address) throws Exception {
        try (var producer = producer(address, "none", Map.of("client.id", "crm"))) {
            for (int slot = 0; slot < 12; slot++) {
                for (int i = 0; i < 8; i++) {
                    int customer = slot < 3 ? slot * 8 + i : RANDOM.nextInt(24);
                    long time = BEGIN + slot * 6 * HOUR + i * 60_000;
                    String city = CITIES[RANDOM.nextInt(CITIES.length)];
                    String value = slot > 6 && i == 0 ? null
                        : "{\"name\":\"%s\",\"city\":\"%s\",\"version\":%d}".formatted(customer(customer), city, slot + 1);
                    producer.send(record("customers", 0, time, customer(customer), value));
                }
                producer.flush();
            }
        }
    }

    /** Transactions of three payments with lz4; every fourth one is aborted, the last one stays open. */
    static void payments(String address) throws Exception {
        var settings = Map.<String, Object>of("transactional.id", "payments-1", "transaction.timeout.ms", 900_000);
        try (var producer = producer(address, "lz4", settings)) {
            producer.initTransactions();
            for (int number = 0; number < 10; number++) {
                producer.beginTransaction();
                for (int i = 0; i < 3; i++) {
                    long time = BEGIN + 60 * HOUR + number * HOUR + i * 1000;
                    int order = 1001 + number * 3 + i;
                    String value = "{\"order\":%d,\"paid\":\"%d.00\"}".formatted(order, 10 + RANDOM.nextInt(90));
                    producer.send(record("payments", 0, time, "order-" + order, value));
                }
                producer.flush();
                if (number == 9) {
                    producer.close(Duration.ZERO);
                    return;
                } else if (number % 4 == 2) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
    }

    /** A consumer group that has read a part of the orders. */
    static void billing(String address) {
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "group.id", "billing", "enable.auto.commit", false);
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            var partitions = List.of(new TopicPartition("orders", 0), new TopicPartition("orders", 1));
            consumer.assign(partitions);
            consumer.commitSync(Map.of(partitions.get(0), new OffsetAndMetadata(60, "day 2"), partitions.get(1), new OffsetAndMetadata(48)));
            consumer.commitSync(Map.of(partitions.get(0), new OffsetAndMetadata(84)));
        }
    }
}
