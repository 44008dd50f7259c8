package ipc_test

import (
	"bytes"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/ipc"
	"stoa/store"
)

// TestExtensionDecides: the extension of a stream gives a stream, every other extension of the format gives a file,
// unless the option decides otherwise.
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
