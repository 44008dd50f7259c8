package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"stoa/store"
)

// asEnding is the environment variable that names one of endings: the test's own program is started again for it,
// because AbortAll stops the whole process from writing.
const asEnding = "STOA_TEST_ENDING"

func TestMain(m *testing.M) {
	if how := os.Getenv(asEnding); how != "" {
		if err := endings[how](os.Getenv(asEnding + "_DIR")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// endings are the actions of a process that calls AbortAll and ends, each in a directory of its own.
var endings = map[string]func(dir string) error{
	"between two files": func(dir string) error {
		s := store.Local{}.Sink(filepath.Join(dir, "out"), nil)
		if _, err := s.Create(ctx, "a"); err != nil {
			return err
		}
		other := store.Local{}.Sink(filepath.Join(dir, "other"), nil)
		store.AbortAll()
		for _, name := range []string{"b", "below/c"} {
			if _, err := s.Create(ctx, name); err == nil {
				return fmt.Errorf("%s was created after AbortAll", name)
			}
		}
		began := make(chan error, 1)
		go func() { // Create must fail, and not block
			_, err := other.Create(ctx, "")
			began <- err
		}()
		select {
		case err := <-began:
			if err == nil {
				return errors.New("Create of another sink succeeded after AbortAll")
			}
		case <-time.After(10 * time.Second):
			return errors.New("Create of another sink blocks after AbortAll")
		}
		if _, err := s.Scratch(ctx); err == nil {
			return errors.New("a scratch file was created after AbortAll")
		}
		if err := s.Commit(ctx); err == nil {
			return errors.New("Commit succeeded after AbortAll")
		}
		return s.Abort(ctx)
	},
	"making files": func(dir string) error {
		s := store.Local{}.Sink(filepath.Join(dir, "out"), nil)
		made := make(chan bool, 1)
		for k := range 4 {
			go func() {
				for i := 0; ; i++ {
					o, err := s.Create(ctx, fmt.Sprintf("%d/%d", k, i))
					if err != nil {
						return
					}
					o.Close()
					select {
					case made <- true:
					default:
					}
				}
			}()
		}
		for range 20 {
			<-made
		}
		store.AbortAll()
		return nil
	},
	"aborting": func(dir string) error {
		s := store.Local{}.Sink(filepath.Join(dir, "out"), nil)
		if _, err := s.Create(ctx, "a"); err != nil {
			return err
		}
		tmp, err := filepath.Glob(filepath.Join(dir, store.TempPrefix+"*"))
		if err != nil || len(tmp) != 1 {
			return fmt.Errorf("%v, %v", tmp, err)
		}
		if err := fill(tmp[0]); err != nil {
			return err
		}
		go s.Abort(ctx)
		for { // until Abort is removing files
			if left, _ := os.ReadDir(tmp[0]); len(left) < many {
				break
			}
		}
		store.AbortAll()
		return nil
	},
	"committing": func(dir string) error {
		out := filepath.Join(dir, "out")
		if err := errors.Join(os.Mkdir(out, 0o755), fill(out)); err != nil {
			return err
		}
		s := store.Local{}.Sink(out, func(string) bool { return true })
		o, err := s.Create(ctx, "new")
		if err != nil {
			return err
		}
		o.Close()
		go s.Commit(ctx)
		for { // until the new directory exists, and the old one is being removed
			if _, err := os.Lstat(filepath.Join(out, "new")); err == nil {
				break
			}
		}
		store.AbortAll()
		left, err := os.ReadDir(out)
		if err != nil || len(left) != 1 {
			return fmt.Errorf("expected 1 file in the output directory, got %d, %v", len(left), err)
		}
		return os.RemoveAll(out)
	},
}

// many files take long to remove.
const many = 20_000

func fill(dir string) error {
	for i := range many {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// TestAbortAll: a process that ends after AbortAll leaves no file, whatever it was doing and however long that takes.
func TestAbortAll(t *testing.T) {
	for how := range endings {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), asEnding+"="+how, asEnding+"_DIR="+dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%v was not removed, %v", left, err)
			}
		})
	}
}

// TestAbortedSinkMakesNothing: after Abort a sink creates no more files.
func TestAbortedSinkMakesNothing(t *testing.T) {
	for _, first := range []string{"", "a", "below/a"} {
		dir := t.TempDir()
		s := store.Local{}.Sink(filepath.Join(dir, "out"), nil)
		write(t, s, first, "x")
		if err := s.Abort(ctx); err != nil {
			t.Fatal(err)
		}
		for _, late := range []string{"", "b", "below/b"} {
			if _, err := s.Create(ctx, late); !errors.Is(err, fs.ErrClosed) {
				t.Errorf("Create(%q) after Create(%q) and Abort: got %v, want ErrClosed", late, first, err)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%q: %v was not removed, %v", first, left, err)
		}
	}
}
