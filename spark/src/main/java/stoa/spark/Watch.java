package stoa.spark;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;

/**
 * Ends the command of a task that was cancelled. The task itself may wait in a read of the pipe, which no interrupt
 * ends. A command whose executor dies ends by itself: nobody reads its pipe any longer.
 */
final class Watch {
  private static final Set<Watch> ALL = ConcurrentHashMap.newKeySet();
  private static ScheduledExecutorService ticks;

  private final Process process;
  private final TaskContext task;

  Watch(Process process, TaskContext task) {
    this.process = process;
    this.task = task;
    if (task != null) {
      ALL.add(this);
      start();
    }
  }

  private static synchronized void start() {
    if (ticks == null) {
      ticks = Executors.newSingleThreadScheduledExecutor(r -> {
        Thread t = new Thread(r, "stoa watch");
        t.setDaemon(true);
        return t;
      });
      ticks.scheduleWithFixedDelay(Watch::look, 200, 200, TimeUnit.MILLISECONDS);
    }
  }

  private static void look() {
    for (Watch w : ALL) {
      if (w.task.isInterrupted() || w.task.isCompleted()) {
        w.process.destroyForcibly();
        w.end();
      }
    }
  }

  void end() {
    ALL.remove(this);
  }
}
