// Command lb creates, shows, changes, deletes and watches load balancers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// What the command ends with.
const (
	exitDone     = 0
	exitRefused  = 1
	exitUsage    = 2
	exitTimedOut = 3
)

const usage = `Usage: lb <command> [flags]

  create NAME   make a load balancer        lb create web --region us-east-1 --port 80 --backend fd20::1 --wait
  list          show all of the project
  get NAME      show one
  update NAME   change what is given, keep the rest
  delete NAME   delete one
  watch [NAME]  show every change as it happens

Environment: LB_ENDPOINT, e.g. http://127.0.0.1:4000/projects/demo/graphql, and LB_TOKEN.
lb <command> --help lists the flags. A NAME can also be given as --id ID.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 timed out.
`

type command func(ctx context.Context, call *call, args []string) error

var commands = map[string]command{
	"create": create,
	"list":   list,
	"get":    get,
	"update": update,
	"delete": remove,
	"watch":  watch,
}

// call is one run of the command: where it writes, and what its environment says.
type call struct {
	out, err io.Writer
	env      func(string) string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, &call{os.Stdout, os.Stderr, os.Getenv}, os.Args[1:]))
}

func run(ctx context.Context, call *call, args []string) int {
	if len(args) == 0 {
		fmt.Fprint(call.err, usage)
		return exitUsage
	}
	named, ok := commands[args[0]]
	if !ok {
		if args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
			fmt.Fprint(call.out, usage)
			return exitDone
		}
		fmt.Fprintf(call.err, "lb: there is no command %q\n\n%s", args[0], usage)
		return exitUsage
	}
	err := named(ctx, call, args[1:])
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	tell(call.err, err)
	if _, ok := errors.AsType[*wrongUsage](err); ok {
		return exitUsage
	}
	if errors.Is(err, errTimedOut) || errors.Is(err, context.DeadlineExceeded) {
		return exitTimedOut
	}
	return exitRefused
}
