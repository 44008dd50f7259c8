package attack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// answer is the outcome of one command line.
type answer struct {
	Status int
	Stdout []byte
	Stderr []byte
	Grown  int64 // peak growth of the process in bytes; 0 if unknown
	died   string
}

// The exit statuses. died is not one of them: it means that the process gave no answer.
const (
	fine = iota
	cannot
	use
	damage
	died = -1
)

// command runs command lines of stoa.
type command interface {
	run(args ...string) answer
}

// served is the command in a separate process that accepts one command line after another. It is restarted after it has
// died.
type served struct {
	binary string
	limit  time.Duration
	cmd    *exec.Cmd
	in     *os.File
	out    *json.Decoder
	stderr *bytes.Buffer
	closes []io.Closer
	calls  int
}

// built is the directory of the command under attack, shared by all tests; "" until a test needs it.
var built string

func TestMain(m *testing.M) {
	m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
}

// binary compiles the command under attack: the test binary of cmd/stoa, which serves command lines.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stoa-attack-")
	if err != nil {
		return "", err
	}
	built = dir
	name := filepath.Join(dir, "stoa.test")
	out, err := exec.Command("go", "test", "-vet=off", "-c", "-o", name, "stoa/cmd/stoa").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go test -c stoa/cmd/stoa: %w\n%s", err, out)
	}
	return name, nil
})

// build returns the command under attack, in a separate process for this test.
func build(t *testing.T) *served {
	t.Helper()
	binary, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{binary: binary, limit: 30 * time.Second}
	t.Cleanup(s.stop)
	return s
}

func (s *served) start() error {
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	s.stderr = new(bytes.Buffer)
	s.cmd = exec.Command(s.binary)
	s.cmd.Env = append(os.Environ(), "STOA_SERVE=1", "GOGC=200")
	s.cmd.ExtraFiles = []*os.File{inR, outW}
	s.cmd.Stderr = s.stderr
	if err := s.cmd.Start(); err != nil {
		return err
	}
	inR.Close()
	outW.Close()
	s.in, s.out, s.closes = inW, json.NewDecoder(outR), []io.Closer{inW, outR}
	return nil
}

// stop ends the process, if there is one.
func (s *served) stop() {
	if s.cmd == nil {
		return
	}
	for _, c := range s.closes {
		c.Close()
	}
	process := s.cmd.Process
	kill := time.AfterFunc(3*time.Second, func() { process.Kill() })
	s.cmd.Wait()
	kill.Stop()
	s.cmd = nil
}

func (s *served) run(args ...string) answer {
	if s.calls++; s.calls%2000 == 0 { // restart: accumulation over many command lines is not tested here
		s.stop()
	}
	if s.cmd == nil {
		if err := s.start(); err != nil {
			panic(err)
		}
	}
	var a answer
	slow := false
	process := s.cmd.Process
	timer := time.AfterFunc(s.limit, func() {
		slow = true
		process.Signal(syscall.SIGABRT) // prints the stack of every goroutine
		time.AfterFunc(5*time.Second, func() { process.Kill() })
	})
	err := json.NewEncoder(s.in).Encode(args)
	if err == nil {
		err = s.out.Decode(&a)
	}
	if timer.Stop() && err == nil {
		return a
	}
	s.cmd.Process.Kill()
	state := s.cmd.Wait()
	a = answer{Status: died, Stderr: s.stderr.Bytes(),
		died: fmt.Sprintf("died: %v: %s", state, where(s.stderr.String()))}
	if slow {
		a.died = fmt.Sprintf("no answer after %v: %s", s.limit, where(s.stderr.String()))
	}
	for _, c := range s.closes {
		c.Close()
	}
	s.cmd = nil
	return a
}

// where returns the first line that a dead process printed, and the innermost line of stoa's own code in its stack
// trace.
func where(trace string) string {
	lines := strings.Split(trace, "\n")
	said := lines[0]
	for _, l := range lines {
		if i := strings.Index(l, ".go:"); i > 0 && !strings.Contains(l, "_test.go") &&
			strings.Contains(trace, "stoa/") && strings.HasPrefix(l, "\t") &&
			!strings.Contains(l, "/src/runtime/") && !strings.Contains(l, "/pkg/mod/") {
			return said + " at " + strings.TrimSpace(l)
		}
	}
	return said
}
