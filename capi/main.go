// Command capi is the C interface of stoa, described in stoa.h. Built with -buildmode=c-shared it is the library that
// bindings to other languages load. The functions of stoa.h are in capi.c, which calls the functions here.
package main

// #cgo LDFLAGS: -lpthread
// #include <stdlib.h>
// #include "stoa.h"
import "C"

import (
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

func main() {}

var versionText = sync.OnceValue(func() *C.char { return C.CString(verbs.Version()) })

//export goVersion
func goVersion() *C.char { return versionText() }

//export goRetain
func goRetain(h C.stoa_t) C.int {
	if !retain(uint64(h)) {
		return C.STOA_INVALID
	}
	return C.STOA_OK
}

//export goRelease
func goRelease(h C.stoa_t) C.int {
	if !release(uint64(h)) {
		return C.STOA_INVALID
	}
	return C.STOA_OK
}

//export goCancel
func goCancel(h C.stoa_t) C.int {
	o, done, err := held[object](uint64(h))
	if err != nil {
		return C.STOA_INVALID
	}
	defer done()
	o.cancel()
	return C.STOA_OK
}

//export goHandles
func goHandles() C.int64_t { return C.int64_t(handleCount()) }

//export goMemory
func goMemory(used, kept *C.int64_t) {
	pool.mu.Lock()
	defer pool.mu.Unlock()
	*used, *kept = C.int64_t(pool.used), C.int64_t(pool.kept)
}

//export goTrim
func goTrim() {
	runtime.GC()
	pool.trim()
}

// answer returns a function's result: the error's class, and its document in out.
func answer(err error, out **C.char) C.int {
	if err != nil && out != nil {
		text, failed := document(docOfError(err))
		if failed != nil { // only texts and numbers: not possible
			text = `{"class":"bug","message":"an error that has no document"}`
		}
		*out = C.CString(text)
	}
	return C.int(classOf(err))
}

// ask parses a request; NULL is an empty one. Unknown members are refused, as a misspelt name would have no effect.
func ask(text *C.char, to any) error {
	if text == nil {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(C.GoString(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fault.Invalidf("request: %v", err)
	}
	return nil
}

// give sets the output pointer to to a document of v, unless there is an error.
func give(to **C.char, v any, err error, fail **C.char) C.int {
	if err == nil {
		var text string
		if text, err = document(v); err == nil {
			*to = C.CString(text)
		}
	}
	return answer(err, fail)
}

func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
