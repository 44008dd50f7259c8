package companion

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"
)

// mostResident is the memory that the process of a query may have: twice the limit of the database, which does not
// count all of one large value.
var mostResident int64 = 2 << 30

// watch runs a program, and kills it when it has more memory than mostResident. It looks so often that a query gains
// less than 100 MB between two looks. Only Linux tells; elsewhere nothing is limited.
func watch(c *exec.Cmd) (tooLarge bool, err error) {
	if err := c.Start(); err != nil {
		return false, err
	}
	var killed atomic.Bool
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if resident(c.Process.Pid) > mostResident {
				killed.Store(true)
				_ = c.Process.Kill() // it may have ended
				return
			}
		}
	}()
	err = c.Wait()
	close(done)
	<-ended
	return killed.Load() && err != nil, err
}

// resident returns the memory of a process in bytes; 0 if the system does not tell.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
