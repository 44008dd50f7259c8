// Command remote puts a slow link between an S3 server and its clients: each response starts after a latency, and all
// responses together are limited to so many bytes a second. It prints its address, and for each line of standard input
// the number of requests since the last line.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// link has a latency and a bandwidth.
type link struct {
	latency time.Duration
	width   float64 // bytes a second; 0: unlimited

	mu       sync.Mutex
	free     time.Time // when the next byte may be sent
	requests map[string]int
	bytes    int64
}

// pass waits until n bytes have passed the link.
func (l *link) pass(n int) {
	l.mu.Lock()
	l.bytes += int64(n)
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	if l.width > 0 {
		l.free = l.free.Add(time.Duration(float64(n) / l.width * float64(time.Second)))
	}
	until := l.free
	l.mu.Unlock()
	time.Sleep(time.Until(until))
}

// narrow is a response that passes the link.
type narrow struct {
	http.ResponseWriter
	l *link
}

func (w narrow) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		k := min(len(b), 32<<10)
		w.l.pass(k)
		m, err := w.ResponseWriter.Write(b[:k])
		if n += m; err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
}

// kind returns the kind of a request.
func kind(r *http.Request) string {
	if r.Method == http.MethodGet && r.URL.Query().Has("list-type") {
		return "LIST"
	}
	return r.Method
}

func main() {
	to := flag.String("to", "http://127.0.0.1:7070", "the server")
	latency := flag.Duration("latency", 20*time.Millisecond, "until an answer begins")
	width := flag.Float64("width", 100, "MB a second; 0: any")
	flag.Parse()
	u, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	l := &link{latency: *latency, width: *width * 1e6, requests: map[string]int{}}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}
	proxy.BufferPool = nil
	proxy.FlushInterval = -1
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.requests[kind(r)]++
		l.mu.Unlock()
		time.Sleep(l.latency)
		proxy.ServeHTTP(narrow{w, l}, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	go http.Serve(listener, h)
	var line [1]byte
	for { // a line of input prints and resets the counts; end of input ends the link
		n, err := os.Stdin.Read(line[:])
		if n > 0 && strings.TrimSpace(string(line[:n])) == "" {
			l.mu.Lock()
			text, _ := json.Marshal(map[string]any{"requests": l.requests, "bytes": l.bytes})
			l.requests, l.bytes = map[string]int{}, 0
			l.mu.Unlock()
			fmt.Println(string(text))
		}
		if err == io.EOF {
			return
		}
	}
}
