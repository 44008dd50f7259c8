// Command footer turns a C library into an extension for DuckDB; usage: footer LIBRARY OUT VERSION PLATFORM. An
// extension ends with 256 bytes of metadata (eight texts of 32 bytes, the last one first) and a signature of 256 bytes,
// which are zero here: DuckDB loads it if unsigned extensions are allowed.
package main

import (
	"fmt"
	"os"
)

// The version of the interface that the extension needs.
const (
	footerVersion = "4"
	interfaceWord = "v1.2.0"
	abi           = "C_STRUCT"
	width         = 32
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: footer LIBRARY OUT VERSION PLATFORM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(library, out, version, platform string) error {
	b, err := os.ReadFile(library)
	if err != nil {
		return err
	}
	texts := []string{"", "", "", abi, version, interfaceWord, platform, footerVersion}
	for _, t := range texts {
		if len(t) > width {
			return fmt.Errorf("%q has %d bytes, at most %d are possible", t, len(t), width)
		}
		field := make([]byte, width)
		copy(field, t)
		b = append(b, field...)
	}
	b = append(b, make([]byte, 256)...)
	if err := os.WriteFile(out+".tmp", b, 0o755); err != nil {
		return err
	}
	return os.Rename(out+".tmp", out)
}
