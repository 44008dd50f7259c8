package verbs

import (
	"errors"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
	"stoa/region"
)

// FindingDoc is a finding in the command's JSON documents.
type FindingDoc = reading.FindingDoc

// DocOfFinding returns the document of a finding.
func DocOfFinding(f region.Finding) FindingDoc { return reading.DocOfFinding(f) }

// Line returns an error as the command reports it: on one line unless it marks a place in a predicate.
func Line(err error) string { return cli.Line(err) }

// WrongUse reports whether an error is about the command line.
func WrongUse(err error) bool {
	return errors.As(err, new(*cli.UseError)) || errors.Is(err, cli.ErrUse)
}

// Said reports whether everything about an error of Run has been reported already, so that the status and the output
// are all there is to know.
func Said(err error) bool {
	return err == nil || errors.Is(err, cli.ErrDamage) || errors.Is(err, cli.ErrUse) || errors.Is(err, cli.ErrFailed) ||
		errors.Is(err, cli.ErrStopped)
}
