import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.CleanShutdownFileHandler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Kafka's side of the comparison, with a broker's own classes.
 *
 * <p>{@code make LOGDIR CODEC BYTES KEYS} writes the partition {@code orders-0}: one closed segment of so many bytes, and an active one
 * with one record. {@code serve} keeps a JVM warm: each line on its input is {@code recover LOGDIR} or {@code clean LOGDIR}, and is
 * answered by the nanoseconds that the work took, by the clock and of the processor.
 */
public final class Kafka {
    private static final int BATCH_BYTES = 16 * 1024;
    private static final int INDEX_BYTES = 10 * 1024 * 1024;
    /** The broker's defaults: log.cleaner.dedupe.buffer.size, half of log.cleaner.io.buffer.size, its load factor. */
    private static final int MAP_BYTES = 128 * 1024 * 1024;
    private static final int IO_BUFFER_BYTES = 256 * 1024;
    private static final double LOAD_FACTOR = 0.9;
    private static final String[] WORDS = ("the parcel left our house by courier and was signed for at noon while two more wait for a stamp "
        + "price stock colour size street town country member since gift card thanks again").split(" ");

    public static void main(String[] args) throws Exception {
        if (args[0].equals("make")) {
            make(new File(args[1]), args[2], Long.parseLong(args[3]), Integer.parseInt(args[4]));
        } else {
            serve();
        }
    }

    /** A scheduler that forgets what it is given: nothing here runs beside the work that is measured. */
    private static final class NoScheduler implements Scheduler {
        public void startup() {}

        public void shutdown() {}

        public void resizeThreadPool(int threads) {}

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            // All that is ever asked of it is to be cancelled.
            return (ScheduledFuture<?>) Proxy.newProxyInstance(Kafka.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class},
                (proxy, method, arguments) -> false);
        }
    }

    private enum Shutdown { CLEAN, UNCLEAN }

    private static UnifiedLog open(File logDir, Shutdown shutdown) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("cleanup.policy", "compact");
        settings.put("segment.index.bytes", INDEX_BYTES);
        settings.put("index.interval.bytes", 4096);
        settings.put("segment.bytes", Integer.MAX_VALUE);
        long recoveryPoint = shutdown == Shutdown.CLEAN ? Long.MAX_VALUE : 0;
        return UnifiedLog.create(new File(logDir, "orders-0"), new LogConfig(settings), 0, recoveryPoint, new NoScheduler(),
            new BrokerTopicStats(false), Time.SYSTEM, 300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(10), shutdown == Shutdown.CLEAN, Optional.empty());
    }

    private static void make(File logDir, String codec, long bytes, int keys) throws Exception {
        new File(logDir, "orders-0").mkdirs();
        Compression compression = Compression.of(CompressionType.forName(codec)).build();
        Random random = new Random(42);
        UnifiedLog log = open(logDir, Shutdown.CLEAN);
        long written = 0;
        long timestamp = 1_700_000_000_000L;
        ByteBuffer buffer = ByteBuffer.allocate(4 * BATCH_BYTES);
        while (written < bytes) {
            buffer.clear();
            MemoryRecordsBuilder batch = new MemoryRecordsBuilder(buffer, RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME,
                log.logEndOffset(), timestamp, -1, (short) -1, -1, false, false, 0, buffer.capacity());
            for (int raw = 0; raw < BATCH_BYTES; ) {
                byte[] key = String.format("user-%08d", random.nextInt(keys)).getBytes(StandardCharsets.UTF_8);
                byte[] value = value(random);
                batch.append(timestamp, key, value);
                timestamp += random.nextInt(20);
                raw += key.length + value.length;
            }
            MemoryRecords records = batch.build();
            log.appendAsFollower(records, 0);
            written += records.sizeInBytes();
        }
        log.roll();
        log.appendAsFollower(MemoryRecords.withRecords(log.logEndOffset(), Compression.NONE, 0,
            new SimpleRecord(timestamp, "last".getBytes(StandardCharsets.UTF_8), new byte[8])), 0);
        log.prepareActiveSegmentForClose();
        log.flush(true);
        System.out.println(log.logEndOffset());
        log.close();
        new CleanShutdownFileHandler(logDir.getPath()).write(1L);
    }

    /** JSON of 200 to 1000 bytes. */
    private static byte[] value(Random random) {
        StringBuilder json = new StringBuilder(1024);
        json.append("{\"order\":\"").append(new UUID(random.nextLong(), random.nextLong()));
        json.append("\",\"customer\":").append(random.nextInt(1_000_000));
        json.append(",\"total\":").append(random.nextInt(100_000) / 100.0).append(",\"note\":\"");
        int size = 200 + random.nextInt(798);
        while (json.length() < size) {
            json.append(WORDS[random.nextInt(WORDS.length)]).append(' ');
        }
        json.setLength(size);
        return json.append("\"}").toString().getBytes(StandardCharsets.UTF_8);
    }

    private static void serve() throws Exception {
        SkimpyOffsetMap map = new SkimpyOffsetMap(MAP_BYTES);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ", 2);
            Times times = words[0].equals("recover") ? recover(new File(words[1])) : clean(new File(words[1]), map);
            System.out.println(times.wall + " " + times.processor);
        }
    }

    private static Times recover(File logDir) throws Exception {
        Times times = new Times();
        UnifiedLog log = open(logDir, Shutdown.UNCLEAN);
        times.stop();
        log.close();
        return times;
    }

    /** A round from the start of the log, written and flushed as the cleaner does it. */
    private static Times clean(File logDir, SkimpyOffsetMap map) throws Exception {
        UnifiedLog log = open(logDir, Shutdown.CLEAN);
        log.updateHighWatermark(log.logEndOffset());
        Throttler unlimited = new Throttler(Double.MAX_VALUE, 300, "throttler", "entries", Time.SYSTEM);
        Cleaner cleaner = new Cleaner(0, map, IO_BUFFER_BYTES, log.config().maxMessageSize(), LOAD_FACTOR, unlimited, Time.SYSTEM,
            (TopicPartition partition) -> {});
        LogToClean dirty = new LogToClean(log, 0, log.activeSegment().baseOffset(), false);
        Times times = new Times();
        cleaner.clean(dirty);
        times.stop();
        log.close();
        return times;
    }

    /** What has passed since it was made. */
    private static final class Times {
        private long wall = System.nanoTime();
        private long processor = processor();

        void stop() {
            wall = System.nanoTime() - wall;
            processor = processor() - processor;
        }

        private static long processor() {
            return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
        }
    }
}
