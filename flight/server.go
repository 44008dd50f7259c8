package main

import (
	"context"
	"errors"
	"io/fs"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/internal/sqltext"
	"stoa/serve"
)

// server answers the requests of Flight SQL.
type server struct {
	flightsql.BaseServer
	tables  *catalogue
	engine  *engine // nil: statements are queries of one table
	sign    *signer
	runs    runs
	reading chan struct{}
	log     func(string)

	splitBytes int64 // about how many bytes an endpoint has
}

func newServer(tables *catalogue, log func(string)) (*server, error) {
	s := &server{tables: tables, sign: newSigner(), reading: make(chan struct{}, maxReading), log: log}
	s.Alloc = memory.DefaultAllocator
	for id, value := range map[flightsql.SqlInfo]any{
		flightsql.SqlInfoFlightSqlServerName:         "stoa",
		flightsql.SqlInfoFlightSqlServerVersion:      verbs.Version(),
		flightsql.SqlInfoFlightSqlServerArrowVersion: arrow.PkgVersion,
		flightsql.SqlInfoFlightSqlServerReadOnly:     true,
		flightsql.SqlInfoFlightSqlServerSql:          true,
		flightsql.SqlInfoFlightSqlServerSubstrait:    false,
		flightsql.SqlInfoFlightSqlServerCancel:       true,
		flightsql.SqlInfoDDLCatalog:                  false,
		flightsql.SqlInfoDDLSchema:                   false,
		flightsql.SqlInfoDDLTable:                    false,
		flightsql.SqlInfoIdentifierQuoteChar:         `"`,
		flightsql.SqlInfoAllTablesAreASelectable:     true,
		flightsql.SqlInfoSchemaTerm:                  "place",
		flightsql.SqlInfoCatalogTerm:                 "catalog",
		flightsql.SqlInfoCatalogAtStart:              true,
	} {
		if err := s.RegisterSqlInfo(id, value); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// grpcError gives an error the code of its class; the text is stoa's, with object, offset and length.
func grpcError(err error) error {
	if _, ok := status.FromError(err); ok || err == nil {
		return err
	}
	code := codes.Unknown
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, fs.ErrNotExist):
		code = codes.NotFound
	case errors.Is(err, fault.Corrupt):
		code = codes.DataLoss
	case errors.Is(err, fault.Unsupported):
		code = codes.Unimplemented
	case errors.Is(err, fault.Invalid):
		code = codes.InvalidArgument
	case fault.OverBudget(err):
		code = codes.ResourceExhausted
	case errors.Is(err, fault.Bug):
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}

// info is the answer to a statement: its schema, and an endpoint for each split. Without a location an endpoint is read
// from this server.
func (s *server) info(ctx context.Context, statement string, desc *flight.FlightDescriptor) (*flight.FlightInfo,
	error) {
	b, err := s.bind(ctx, statement)
	if err != nil {
		return nil, grpcError(err)
	}
	defer b.Close()
	splits, rows, err := b.splits(ctx, s.splitBytes)
	if err != nil {
		return nil, grpcError(err)
	}
	id := serve.NewToken()
	out := &flight.FlightInfo{Schema: flight.SerializeSchema(b.schema, memory.DefaultAllocator), FlightDescriptor: desc,
		TotalRecords: rows, TotalBytes: -1, Ordered: true, AppMetadata: s.sign.seal(ticket{ID: id})}
	add := func(t ticket) error {
		b, err := flightsql.CreateStatementQueryTicket(s.sign.seal(t))
		out.Endpoint = append(out.Endpoint, &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: b}})
		return err
	}
	for i := range splits {
		if err := add(ticket{ID: id, Query: statement, Split: &splits[i]}); err != nil {
			return nil, err
		}
	}
	if splits == nil { // not divided, or without rows: the schema comes with an empty stream, too
		if err := add(ticket{ID: id, Query: statement}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *server) GetFlightInfoStatement(ctx context.Context, q flightsql.StatementQuery,
	desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(ctx, q.GetQuery(), desc)
}

func (s *server) GetSchemaStatement(ctx context.Context, q flightsql.StatementQuery, _ *flight.FlightDescriptor) (
	*flight.SchemaResult, error) {
	return s.schemaOf(ctx, q.GetQuery())
}

func (s *server) schemaOf(ctx context.Context, statement string) (*flight.SchemaResult, error) {
	b, err := s.bind(ctx, statement)
	if err != nil {
		return nil, grpcError(err)
	}
	defer b.Close()
	return &flight.SchemaResult{Schema: flight.SerializeSchema(b.schema, memory.DefaultAllocator)}, nil
}

func (s *server) DoGetStatement(ctx context.Context, q flightsql.StatementQueryTicket) (*arrow.Schema,
	<-chan flight.StreamChunk, error) {
	t := &ticket{}
	if err := s.sign.open(q.GetStatementHandle(), t); err != nil {
		return nil, nil, grpcError(err)
	}
	return s.read(ctx, t)
}

// read begins to read a ticket.
func (s *server) read(ctx context.Context, t *ticket) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	run, end, err := s.runs.begin(ctx, t.ID)
	if err != nil {
		return nil, nil, grpcError(err)
	}
	b, err := s.bind(ctx, t.Query)
	if err != nil {
		end()
		return nil, nil, grpcError(err)
	}
	out := make(chan flight.StreamChunk)
	go func() {
		defer end()
		s.stream(ctx, run, b, t, out)
	}()
	return b.schema, out, nil
}

func (s *server) CancelFlightInfo(_ context.Context, r *flight.CancelFlightInfoRequest) (
	flight.CancelFlightInfoResult, error) {
	t := &ticket{}
	if err := s.sign.open(r.GetInfo().GetAppMetadata(), t); err != nil {
		return flight.CancelFlightInfoResult{}, grpcError(err)
	}
	s.runs.cancel(t.ID)
	return flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelled}, nil
}

// A prepared statement is its text: its handle has it, signed, so that nothing is kept here and closing is nothing.

func (s *server) CreatePreparedStatement(ctx context.Context, r flightsql.ActionCreatePreparedStatementRequest) (
	out flightsql.ActionCreatePreparedStatementResult, err error) {
	statement := r.GetQuery()
	all := parameters(statement)
	if len(all) > maxParameters {
		return out, grpcError(fault.New(fault.Limit, fault.Span{}, "", "a statement has more than %d parameters",
			maxParameters))
	}
	b, err := s.bind(ctx, withoutValues(statement, all))
	if err != nil {
		return out, grpcError(err)
	}
	defer b.Close()
	out.Handle, out.DatasetSchema = s.sign.seal(ticket{Query: statement}), b.schema
	if len(all) > 0 {
		out.ParameterSchema = parameterSchema(all, s.columns(ctx, b))
	}
	return out, nil
}

// columns are the schemas of the tables of a statement.
func (s *server) columns(ctx context.Context, b *bound) (out []*arrow.Schema) {
	if b.Table != nil {
		return []*arrow.Schema{b.Table.Schema()}
	}
	all, err := s.tables.all(ctx)
	if err != nil {
		return nil
	}
	for _, name := range tableNames(b.script.statement, sqltext.Lex(b.script.statement)) {
		if t, ok, err := one(all, name.parts); ok && err == nil {
			if open, err := t.open(ctx); err == nil {
				out = append(out, open.Schema())
				open.Close()
			}
		}
	}
	return out
}

func (s *server) ClosePreparedStatement(context.Context, flightsql.ActionClosePreparedStatementRequest) error {
	return nil
}

func (s *server) prepared(q flightsql.PreparedStatementQuery) (*ticket, error) {
	t := &ticket{}
	err := s.sign.open(q.GetPreparedStatementHandle(), t)
	return t, grpcError(err)
}

func (s *server) GetFlightInfoPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery,
	desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	t, err := s.prepared(q)
	if err != nil {
		return nil, err
	}
	return s.info(ctx, t.Query, desc)
}

func (s *server) GetSchemaPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery,
	_ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	t, err := s.prepared(q)
	if err != nil {
		return nil, err
	}
	return s.schemaOf(ctx, t.Query)
}

func (s *server) DoGetPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery) (*arrow.Schema,
	<-chan flight.StreamChunk, error) {
	t, err := s.prepared(q)
	if err != nil {
		return nil, nil, err
	}
	t.ID = serve.NewToken()
	return s.read(ctx, t)
}
