package redfile_test

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/store"
)

// TestSchemaIsNotIgnored: a file that has its own schema is not read with one that the user names, and an error says
// so; recovery, which may need it, accepts the option.
func TestSchemaIsNotIgnored(t *testing.T) {
	whole := writeSample(t, 20, map[string]string{})
	tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.red": whole, "s.json": []byte(sampleSchemaJSON)}),
		Name: "f.red"}
	o := format.OpenOptions{Opts: map[string]string{"schema": "s.json"}}
	if _, err := redfile.Format.Open(ctx, tg, o); !errors.Is(err, fault.Invalid) {
		t.Errorf("opened: %v", err)
	}
	r, _, err := redfile.Format.Recover(ctx, tg, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}
