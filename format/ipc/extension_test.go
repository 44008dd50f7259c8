package ipc_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/ipc"
	"stoa/store"
)

// TestExtensionDecides: by a name that is a stream's a stream is written, by each other of the format's a file,
// unless the option says which.
func TestExtensionDecides(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, ext := range ipc.Format.Extensions {
		for _, option := range []string{"", "true", "false"} {
			o := format.WriteOptions{Name: "t" + ext}
			if option != "" {
				o.Opts = map[string]string{"stream": option}
			}
			m := store.NewMemory(nil)
			w, err := ipc.Format.Create(t.Context(), m.Sink("t"+ext), sc, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			stream := !bytes.HasPrefix(m.Bytes("t"+ext), []byte("ARROW1"))
			if want := option == "true" || option == "" && ext == ".arrows"; stream != want {
				t.Errorf("t%s, stream=%s: a stream %t, want %t", ext, option, stream, want)
			}
		}
	}
}
