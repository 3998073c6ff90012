import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.security.MessageDigest;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.Supplier;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Loads log dirs as a broker of 4.4 does at its start, reads all that a fetch would return, and closes them in order. Usage:
 * LoadLogs FILE, where each line of FILE has, separated by tabs: log dir, clock in ms, topic settings (K=V;...), topic ids
 * (TOPIC=ID;...; without any no partition is a stray). Prints one JSON object for each.
 */
public class LoadLogs {
    public static void main(String[] args) throws Exception {
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String[] parts = line.split("\t", -1);
            System.out.println(load(new File(parts[0]), Long.parseLong(parts[1]), pairs(parts[2]), pairs(parts[3])));
        }
    }

    static Map<String, String> pairs(String text) {
        Map<String, String> pairs = new HashMap<>();
        for (String pair : text.split(";")) if (!pair.isEmpty()) pairs.put(pair.split("=", 2)[0], pair.split("=", 2)[1]);
        return pairs;
    }

    static String load(File logDir, long now, Map<String, String> settings, Map<String, String> topicIds) {
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        Tasks tasks = new Tasks();
        StringBuilder partitions = new StringBuilder();
        try {
            LogManager manager = new LogManager(List.of(logDir), List.of(), resource -> new Properties(), new LogConfig(settings),
                new CleanerConfig(false), 1, Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, Long.MAX_VALUE, 60000,
                new ProducerStateManagerConfig(86400000, false), 600000, tasks, new BrokerTopicStats(), failures, new Clock(now),
                false, 30000L, (a, b, c, d, e) -> null);
            manager.startup(Set.of(), log -> {
                if (topicIds.isEmpty()) return false;
                boolean known = log.topicId().filter(id -> topicIds.containsValue(id.toString())).isPresent();
                return log.topicId().isEmpty() || LogManager.isStrayReplica(known ? List.of(1) : List.of(), 1, log);
            });
            tasks.run();
            for (UnifiedLog log : manager.allLogs()) {
                if (!partitions.isEmpty()) partitions.append(',');
                partitions.append("{\"partition\":\"").append(log.topicPartition()).append("\",\"directory\":\"").append(log.dir().getName())
                    .append("\",\"start\":").append(log.logStartOffset()).append(",\"end\":").append(log.logEndOffset())
                    .append(",\"batches\":[").append(read(log)).append("]}");
            }
            manager.shutdown(1L);
            tasks.run();
        } catch (Throwable error) {
            return "{\"failure\":" + quoted(error.toString()) + "}";
        }
        if (failures.hasOfflineLogDir(logDir.getAbsolutePath())) return "{\"failure\":\"the log dir is offline\"}";
        return "{\"failure\":null,\"partitions\":[" + partitions + "]}";
    }

    /** First and last offset, SHA-256 of the bytes; instead of a batch that cannot be read or does not verify, why, and no more. */
    static String read(UnifiedLog log) {
        StringJoiner batches = new StringJoiner(",");
        try {
            read(log, batches);
        } catch (Exception error) {
            batches.add(quoted(error.toString()));
        }
        return batches.toString();
    }

    static void read(UnifiedLog log, StringJoiner batches) throws Exception {
        for (long next = log.logStartOffset(), before = -1; next < log.logEndOffset() && next != before; ) {
            before = next;
            for (RecordBatch batch : log.read(next, 1 << 20, FetchIsolation.LOG_END, true).records.batches()) {
                if (batch.lastOffset() < next) continue;
                batch.ensureValid();
                ByteBuffer bytes = ByteBuffer.allocate(batch.sizeInBytes());
                batch.writeTo(bytes);
                String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes.array()));
                batches.add("[" + batch.baseOffset() + "," + batch.lastOffset() + ",\"" + digest + "\"]");
                next = batch.nextOffset();
            }
        }
    }

    static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ") + '"';
    }

    /** Stands still. */
    record Clock(long now) implements Time {
        public long milliseconds() { return now; }
        public long nanoseconds() { return now * 1_000_000; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
    }

    /** Runs what is due at once when told to, and nothing that is due later. */
    static class Tasks implements Scheduler {
        final Queue<Runnable> due = new ConcurrentLinkedQueue<>();

        void run() {
            for (Runnable task = due.poll(); task != null; task = due.poll()) task.run();
        }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (delayMs <= 0 && periodMs < 0) due.add(task);
            return new Nothing();
        }

        public void startup() { }
        public void shutdown() { }
        public void resizeThreadPool(int size) { }
    }

    /** Only to be cancelled. */
    static class Nothing extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        public long getDelay(TimeUnit unit) { return 0; }
        public int compareTo(Delayed other) { return 0; }
    }
}
