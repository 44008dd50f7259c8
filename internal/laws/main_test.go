package laws_test

import (
	"log"
	"os"
	"testing"
)

// kuduFile is a block that a real Kudu wrote: the first key column of a compound key.
const kuduFile = "corpus/kudu/1.18.1/key_int32/k.ck.cfile"

// TestMain changes to the module's root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		log.Fatal(err)
	}
	m.Run()
}
