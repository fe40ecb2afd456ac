package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Khan/genqlient/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"network-load-balancers/clients/go/api"
)

var errTimedOut = errors.New("it was not in effect in time; it goes on by itself, and 'lb get' shows how far it is")

// wrongUsage is a command line that can't be meant.
type wrongUsage struct{ text string }

func (w *wrongUsage) Error() string { return w.text }

func usageError(format string, values ...any) error {
	return &wrongUsage{fmt.Sprintf(format, values...)}
}

// userError is what every refusal in a result union has.
type userError interface {
	GetCode() string
	GetMessage() string
	GetPath() []string
	GetHint() *string
}

// refusal is a change that the API answered with a reason instead.
type refusal struct {
	userError
	issues []api.IssueFields
}

func (r *refusal) Error() string { return r.GetMessage() }

// refused turns a mutation's result that isn't its payload into an error.
func refused(result any) error {
	told, ok := result.(userError)
	if !ok {
		return errors.New("the server gave no answer")
	}
	refusal := &refusal{userError: told}
	if invalid, ok := result.(interface{ GetIssues() []api.IssueFields }); ok {
		refusal.issues = invalid.GetIssues()
	}
	return refusal
}

// tell writes an error for people.
func tell(out io.Writer, err error) {
	if refusal, ok := errors.AsType[*refusal](err); ok {
		fmt.Fprintf(out, "lb: refused: %s (%s)\n", refusal.GetMessage(), refusal.GetCode())
		for _, issue := range refusal.issues {
			fmt.Fprintf(out, "  %s: %s (%s)\n", strings.Join(issue.Path, "."), issue.Message, issue.Code)
			if issue.Suggestion != nil {
				fmt.Fprintf(out, "    did you mean %s?\n", *issue.Suggestion)
			}
		}
		if hint := refusal.GetHint(); hint != nil {
			fmt.Fprintf(out, "hint: %s\n", *hint)
		}
		return
	}
	if failed, ok := errors.AsType[*graphql.HTTPError](err); ok {
		tellAll(out, failed.Response.Errors, fmt.Sprintf("HTTP %d", failed.StatusCode))
		return
	}
	if failed, ok := errors.AsType[gqlerror.List](err); ok {
		tellAll(out, failed, "failed")
		return
	}
	fmt.Fprintf(out, "lb: %s\n", err)
}

func tellAll(out io.Writer, all gqlerror.List, otherwise string) {
	if len(all) == 0 {
		fmt.Fprintf(out, "lb: %s\n", otherwise)
	}
	for _, one := range all {
		code, ok := one.Extensions["code"].(string)
		if !ok {
			code = otherwise
		}
		fmt.Fprintf(out, "lb: %s (%s)\n", one.Message, code)
	}
}
