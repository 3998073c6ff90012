import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Asks a broker what it serves. Usage: Client COMMAND HOST:PORT ARG... */
public class Client {
    public static void main(String[] args) throws Exception {
        List<String> rest = List.of(args).subList(2, args.length);
        switch (args[0]) {
            case "consume" -> consume(args[1], rest.get(0), rest.subList(1, rest.size()));
            case "create" -> create(args[1], rest);
            case "create-for" -> createFor(args[1], rest);
            case "offsets" -> offsets(args[1], rest.get(0));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static Consumer<byte[], byte[]> consumer(String address, String isolation) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", address, "isolation.level", isolation, "enable.auto.commit", false,
            "max.partition.fetch.bytes", 64 << 20, "fetch.max.bytes", 256 << 20);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static List<TopicPartition> partitions(Consumer<?, ?> consumer, String topic) {
        return consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition()))
            .sorted(Comparator.comparing(TopicPartition::partition)).toList();
    }

    /** All records of topics, one JSON object a line; ends at the end offset of this isolation level. */
    static void consume(String address, String isolation, List<String> topics) {
        StringBuilder out = new StringBuilder();
        try (Consumer<byte[], byte[]> consumer = consumer(address, isolation)) {
            for (TopicPartition partition : topics.stream().flatMap(topic -> partitions(consumer, topic).stream()).toList()) {
                consumer.assign(List.of(partition));
                consumer.seekToBeginning(List.of(partition));
                long end = consumer.endOffsets(List.of(partition)).get(partition);
                long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
                while (consumer.position(partition) < end) {
                    if (System.nanoTime() > deadline) throw new IllegalStateException(
                        partition + " stands still at " + consumer.position(partition) + ", end is " + end);
                    for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                        deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
                        line(out, record);
                    }
                }
            }
        }
        System.out.print(out);
    }

    static void line(StringBuilder out, ConsumerRecord<byte[], byte[]> record) {
        out.append("{\"topic\":\"").append(record.topic()).append("\",\"partition\":").append(record.partition()).append(",\"offset\":").append(record.offset())
            .append(",\"timestamp\":").append(record.timestamp())
            .append(",\"timestampType\":\"").append(record.timestampType()).append('"')
            .append(",\"key\":").append(base64(record.key())).append(",\"value\":").append(base64(record.value()))
            .append(",\"headers\":[");
        String separator = "";
        for (Header header : record.headers()) {
            byte[] key = header.key().getBytes(java.nio.charset.StandardCharsets.UTF_8);
            out.append(separator).append('[').append(base64(key)).append(',').append(base64(header.value())).append(']');
            separator = ",";
        }
        out.append("],\"leaderEpoch\":").append(record.leaderEpoch().map(String::valueOf).orElse("null")).append("}\n");
    }

    static String base64(byte[] bytes) {
        return bytes == null ? "null" : '"' + Base64.getEncoder().encodeToString(bytes) + '"';
    }

    /** Topics as NAME:PARTITIONS[:KEY=VALUE...]. */
    static void create(String address, List<String> topics) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            List<NewTopic> all = new ArrayList<>();
            for (String topic : topics) {
                String[] parts = topic.split(":");
                Map<String, String> settings = new HashMap<>();
                for (int i = 2; i < parts.length; i++) settings.put(parts[i].split("=")[0], parts[i].split("=")[1]);
                all.add(new NewTopic(parts[0], Integer.parseInt(parts[1]), (short) 1).configs(settings));
            }
            admin.createTopics(all).all().get();
        }
    }

    /** Topics with enough partitions for these directories, named TOPIC-PARTITION. */
    static void createFor(String address, List<String> directories) throws Exception {
        Map<String, Integer> partitions = new TreeMap<>();
        for (String directory : directories) {
            int dash = directory.lastIndexOf('-');
            partitions.merge(directory.substring(0, dash), Integer.parseInt(directory.substring(dash + 1)) + 1, Math::max);
        }
        create(address, partitions.entrySet().stream().map(e -> e.getKey() + ":" + e.getValue()).toList());
    }

    /** Beginning, end and last stable offset of each partition, one JSON object a line. */
    static void offsets(String address, String topic) {
        try (Consumer<byte[], byte[]> all = consumer(address, "read_uncommitted");
             Consumer<byte[], byte[]> committed = consumer(address, "read_committed")) {
            List<TopicPartition> partitions = partitions(all, topic);
            Map<TopicPartition, Long> first = all.beginningOffsets(partitions), end = all.endOffsets(partitions);
            Map<TopicPartition, Long> stable = committed.endOffsets(partitions);
            for (TopicPartition p : partitions) System.out.printf(
                "{\"partition\":%d,\"beginning\":%d,\"end\":%d,\"lastStable\":%d}%n",
                p.partition(), first.get(p), end.get(p), stable.get(p));
        }
    }
}
