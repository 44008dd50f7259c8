// Command stoa-flight serves tables to programs by Arrow Flight SQL: to drivers of ADBC and JDBC, and what uses them.
// It reads only what lies below the places of its command line, and writes nothing.
package main

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/format"
	"stoa/serve"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	args := os.Args[1:]
	if len(args) == 0 || args[0] != "flight" { // with or without the name of the verb in front
		args = append([]string{"flight"}, args...)
	}
	a := verbs.NewApp(nil, os.Stdout, os.Stderr)
	a.UserConfig = true
	status, _ := verbs.RunFlight(ctx, a, args, run)
	stop()
	os.Exit(status)
}

// The limits of a server.
const (
	maxConnections = 128
	maxStreams     = 64 // of a connection
	maxMessage     = 1 << 20
	maxHeaders     = 16 << 10
	connectTime    = 10 * time.Second
	endTime        = 700 * time.Millisecond
)

// run serves places until ctx ends. It calls ready with the address when it listens.
func run(ctx context.Context, f *verbs.FlightFlags, places []string, ready func(address string) error,
	log func(string)) error {
	opening, err := f.MemoryBytes()
	if err != nil {
		return err
	}
	tree, err := serve.NewTree(places)
	if err != nil {
		return err
	}
	defer tree.Close()
	limits := format.Limits{Opening: opening}
	s, err := newServer(newCatalogue(tree.Places(), stoa.OpenOptions{Tree: tree, Limits: limits}), log)
	if err != nil {
		return err
	}
	if verbs.HasSQL() {
		s.engine = newEngine(tree.Places())
	}
	if s.splitBytes, err = f.SplitBytes(); err != nil {
		return err
	}
	g := &guard{token: f.Token, open: f.Listen != "", names: append(f.Names, f.Listen), log: log}
	server, scheme, err := newGRPC(f, g)
	if err != nil {
		return err
	}
	host := "127.0.0.1"
	if f.Listen != "" {
		host = f.Listen
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(f.Port)))
	if err != nil {
		return err
	}
	server.InitListener(netutil.LimitListener(l, maxConnections))
	server.RegisterFlightService(flightsql.NewFlightServer(s))
	if err := ready(scheme + "://" + l.Addr().String()); err != nil {
		l.Close()
		return err
	}
	go func() {
		<-ctx.Done()
		hard := time.AfterFunc(endTime, func() { os.Exit(0) }) // streams that nobody reads
		server.Shutdown()
		hard.Stop()
	}()
	if err := server.Serve(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// newGRPC returns a server that g guards, and the scheme of its address.
func newGRPC(f *verbs.FlightFlags, g *guard) (_ flight.Server, scheme string, err error) {
	scheme = "grpc"
	options := []grpc.ServerOption{grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaders), grpc.ConnectionTimeout(connectTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 10 * time.Minute, Time: time.Minute,
			Timeout: 20 * time.Second})}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, "", err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair},
			MinVersion: tls.VersionTLS12})))
		scheme = "grpc+tls"
	}
	middleware := []flight.ServerMiddleware{{Unary: g.unary, Stream: g.stream}}
	if f.Token != "" {
		middleware = append(middleware, flight.CreateServerBasicAuthMiddleware(g))
	}
	return flight.NewServerWithMiddleware(middleware, options...), scheme, nil
}

// guard lets in what asks under a name of this server, with the token if there is one. It reports panics.
type guard struct {
	token string
	open  bool     // other machines may ask
	names []string // of this server
	log   func(string)
}

// Validate accepts any user whose password is the token, and returns it, for the requests that follow.
func (g *guard) Validate(_, password string) (string, error) {
	if subtle.ConstantTimeCompare([]byte(password), []byte(g.token)) != 1 {
		return "", status.Error(codes.Unauthenticated, "the password is not the token of this server")
	}
	return g.token, nil
}

// IsValid checks the token of a request.
func (g *guard) IsValid(token string) (any, error) {
	if subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) != 1 {
		return nil, status.Error(codes.Unauthenticated, "the token is wrong")
	}
	return "reader", nil
}

// check refuses a name that is not this server's: a page in a browser whose own name was made to lead here has another.
func (g *guard) check(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, a := range md.Get(":authority") {
		name, _, err := net.SplitHostPort(a)
		if err != nil {
			name = a
		}
		name = strings.Trim(name, "[]")
		ip := net.ParseIP(name)
		ok := strings.EqualFold(name, "localhost") || ip != nil && (g.open || ip.IsLoopback())
		for _, n := range g.names {
			ok = ok || n != "" && strings.EqualFold(n, name)
		}
		if !ok {
			return status.Error(codes.PermissionDenied, "this server has another name; --name adds one")
		}
	}
	return nil
}

func (g *guard) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (out any,
	err error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	defer g.recovered(&err)
	return next(stoa.Session(ctx), request)
}

func (g *guard) stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (
	err error) {
	if err := g.check(stream.Context()); err != nil {
		return err
	}
	defer g.recovered(&err)
	return next(srv, stream)
}

// recovered turns a panic, which is a bug, into the error of one request.
func (g *guard) recovered(err *error) {
	if p := recover(); p != nil {
		g.log(fmt.Sprintf("a bug: %v\n%s", p, debug.Stack()))
		*err = status.Errorf(codes.Internal, "a bug in stoa: %v", p)
	}
}
