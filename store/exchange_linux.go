//go:build linux && (amd64 || arm64)

package store

import (
	"runtime"
	"syscall"
	"unsafe"
)

// exchange swaps two names atomically (renameat2 with RENAME_EXCHANGE). Some file systems do not support it.
func exchange(a, b string) error {
	number := uintptr(316)
	if runtime.GOARCH == "arm64" {
		number = 276
	}
	pa, err := syscall.BytePtrFromString(a)
	if err != nil {
		return err
	}
	pb, err := syscall.BytePtrFromString(b)
	if err != nil {
		return err
	}
	cwd := ^uintptr(99) // AT_FDCWD, -100
	if _, _, e := syscall.Syscall6(number, cwd, uintptr(unsafe.Pointer(pa)), cwd, uintptr(unsafe.Pointer(pb)), 2,
		0); e != 0 {
		return e
	}
	return nil
}
