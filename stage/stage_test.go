package stage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/stage"
)

var parquet = stage.Spec{To: "parquet"}

// put stages the numbers from 0 to n-1 as one attempt.
func put(place, job string, s stage.Spec, task, attempt, n int, column string) error {
	sc := arrow.NewSchema([]arrow.Field{{Name: column, Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	batch := b.NewRecordBatch()
	j, err := stage.Begin(context.Background(), place, job, s)
	if err != nil {
		return err
	}
	_, err = j.Write(context.Background(), task, attempt, sc, func(yield func(arrow.RecordBatch, error) bool) {
		yield(batch, nil)
	}, stoa.CreateOptions{})
	return err
}

func commit(place, job string, tasks int) error {
	_, err := stage.Commit(context.Background(), place, job, stage.Options{Choice: stage.Choice{Tasks: tasks}})
	return err
}

func rows(t *testing.T, place string) (n int64) {
	t.Helper()
	table, err := stoa.Open(context.Background(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for b, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		n += b.NumRows()
	}
	return n
}

// TestJobsAtOnce: jobs that are committed side by side add their rows one after the other, and none is lost.
func TestJobsAtOnce(t *testing.T) {
	place := filepath.Join(t.TempDir(), "table")
	var all sync.WaitGroup
	for job := range 4 {
		all.Go(func() {
			name := fmt.Sprint("job", job)
			for task := range 2 {
				if err := put(place, name, parquet, task, 0, 10*(job+1), "n"); err != nil {
					t.Error(err)
				}
			}
			if err := commit(place, name, 2); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := rows(t, place); n != 2*(10+20+30+40) {
		t.Errorf("expected 200 rows, found %d", n)
	}
}

// TestRefused: what would be silently wrong is refused, and changes nothing.
func TestRefused(t *testing.T) {
	place := filepath.Join(t.TempDir(), "table")
	begun := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err error, why string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("expected an error with %q, found %v", why, err)
		}
	}
	begun(put(place, "a", parquet, 0, 0, 5, "n"))
	refused(put(place, "a", parquet, 0, 0, 5, "n"), "was staged already")
	refused(put(place, "a", stage.Spec{To: "trevni"}, 1, 0, 5, "n"), "other options")
	refused(commit(place, "a", 2), "task 1 of job a was not staged")
	begun(put(place, "a", parquet, 1, 0, 5, "other"))
	refused(commit(place, "a", 2), "other columns")
	refused(commit(place, "a", 1), "found task 1")
	refused(commit(place, "a", -1), "expected 0 to")
	refused(commit(place, "a", 1<<62), "expected 0 to")
	begun(stage.Abort(context.Background(), place, "a", nil))
	refused(commit(place, "a", 1), "there is no job a")

	begun(put(place, "b", parquet, 0, 0, 5, "n"))
	begun(commit(place, "b", 1))
	begun(commit(place, "b", 1)) // once more: it adds nothing
	refused(put(place, "b", parquet, 1, 0, 5, "n"), "has been committed")
	begun(put(place, "c", parquet, 0, 0, 5, "other"))
	refused(commit(place, "c", 1), "expected the table's columns")
	begun(put(place, "d", stage.Spec{To: "trevni"}, 0, 0, 5, "n"))
	refused(commit(place, "d", 1), "format parquet")
	refused(put(place, "../x", parquet, 0, 0, 5, "n"), "job's name")

	begun(put(place, "e", stage.Spec{To: "trevni", Overwrite: true}, 0, 0, 7, "n"))
	if n := rows(t, place); n != 5 {
		t.Errorf("expected 5 rows, found %d", n)
	}
	begun(commit(place, "e", 1))
	if n := rows(t, place); n != 7 {
		t.Errorf("expected 7 rows, found %d", n)
	}
	foreign := t.TempDir()
	begun(os.WriteFile(filepath.Join(foreign, "mine.txt"), []byte("mine"), 0o666))
	begun(put(foreign, "f", stage.Spec{To: "parquet", Overwrite: true}, 0, 0, 5, "n"))
	refused(commit(foreign, "f", 1), "no job wrote it")
}

// TestDamagedAttempt: what an attempt says of itself must be that of its directory.
func TestDamagedAttempt(t *testing.T) {
	place := filepath.Join(t.TempDir(), "table")
	if err := put(place, "a", parquet, 0, 0, 5, "n"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(filepath.Dir(place), ".table.stoa-stage", "a", "task-00000-attempt-0", "attempt.json")
	for _, text := range []string{`{"task":-1,"file":"rows.parquet"}`, `{"task":1,"file":"rows.parquet"}`,
		`{"task":0,"attempt":1,"file":"rows.parquet"}`, `{"task":0,"file":"../../secret"}`, `{"task":`} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := commit(place, "a", 1); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: expected damage of %s, found %v", text, name, err)
		}
	}
}

// TestDeadJobs: a job that nobody commits is aborted by its age, and a younger one is not.
func TestDeadJobs(t *testing.T) {
	place := filepath.Join(t.TempDir(), "table")
	for _, job := range []string{"dead", "young"} {
		if err := put(place, job, parquet, 0, 0, 5, "n"); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-48 * time.Hour)
	dead := filepath.Join(filepath.Dir(place), ".table.stoa-stage", "dead")
	err := filepath.WalkDir(dead, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
	names, err := stage.AbortOlder(context.Background(), place, 24*time.Hour, nil)
	if err != nil || !slices.Equal(names, []string{"dead"}) {
		t.Fatalf("expected dead to be aborted, found %v, %v", names, err)
	}
	if err := commit(place, "young", 1); err != nil || rows(t, place) != 5 {
		t.Fatalf("expected 5 rows of young, found %v", err)
	}
}
