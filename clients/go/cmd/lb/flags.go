package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"network-load-balancers/clients/go/api"
)

// flags are those of one command; the first ones every command has.
type flags struct {
	*flag.FlagSet
	call     *call
	endpoint string
	output   string
}

func (c *call) flags(command string) *flags {
	set := &flags{FlagSet: flag.NewFlagSet("lb "+command, flag.ContinueOnError), call: c}
	set.SetOutput(c.err)
	set.StringVar(&set.endpoint, "endpoint", c.env("LB_ENDPOINT"), "`URL` of a project's API; $LB_ENDPOINT where none is given")
	set.StringVar(&set.output, "o", "table", "`format` of the output: table or json")
	return set
}

// parse reads flags and arguments in any order, and connects.
func (f *flags) parse(args []string, most int) ([]string, *api.Client, error) {
	var plain []string
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			if err == flag.ErrHelp {
				return nil, nil, err
			}
			// The flag set has told it already, with all flags there are.
			return nil, nil, usageError("wrong flags")
		}
		args = f.Args()
		if len(args) > 0 {
			plain, args = append(plain, args[0]), args[1:]
		}
	}
	if len(plain) > most {
		return nil, nil, usageError("unexpected argument %q", plain[most])
	}
	if f.output != "table" && f.output != "json" {
		return nil, nil, usageError("-o is table or json, not %q", f.output)
	}
	if f.endpoint == "" {
		return nil, nil, usageError("where is the API? Give --endpoint or LB_ENDPOINT")
	}
	client, err := api.Connect(f.endpoint, f.call.env("LB_TOKEN"))
	if err != nil {
		return nil, nil, usageError("--endpoint: %s", err)
	}
	return plain, client, nil
}

func (f *flags) json(value any) error {
	encoder := json.NewEncoder(f.call.out)
	return encoder.Encode(value)
}

// into remembers a value, and by that whether one was given.
func into(target **string) func(string) error {
	return func(text string) error {
		*target = &text
		return nil
	}
}

func intoNumber(target **int) func(string) error {
	return func(text string) error {
		number, err := strconv.Atoi(text)
		*target = &number
		return err
	}
}

func intoBool(target **bool) func(string) error {
	return func(text string) error {
		yes, err := strconv.ParseBool(text)
		*target = &yes
		return err
	}
}

// each collects a flag that may be given several times, or once with commas.
func each(target *[]string) func(string) error {
	return func(text string) error {
		*target = append(*target, strings.Split(text, ",")...)
		return nil
	}
}

// intoEnum takes the values of the API as people write them: client-ip for CLIENT_IP.
func intoEnum[T ~string](target **T, allowed []T) func(string) error {
	return func(text string) error {
		value := T(strings.ToUpper(strings.ReplaceAll(text, "-", "_")))
		for _, one := range allowed {
			if value == one {
				*target = &value
				return nil
			}
		}
		return fmt.Errorf("one of %v", allowed)
	}
}

// changeable are the flags that creating and updating have in common.
type changeable struct {
	displayName, description *string
	labels                   []api.LabelInput
	affinity                 *api.SessionAffinity
	protect                  *bool
	port                     *int
	protocol                 *string
}

func (f *flags) changeable() *changeable {
	given := &changeable{}
	f.Func("display-name", "a `name` for people", into(&given.displayName))
	f.Func("description", "what it is for, as `text`", into(&given.description))
	f.Func("label", "`key=value`; may be given several times", given.label)
	f.Func("affinity", "none, client-ip or client-ip-and-protocol", intoEnum(&given.affinity, api.AllSessionAffinity))
	f.BoolFunc("protect", "refuse to delete it", intoBool(&given.protect))
	f.Func("port", "the `port` that clients connect to and backends listen on", intoNumber(&given.port))
	f.Func("protocol", "tcp or udp", into(&given.protocol))
	return given
}

func (c *changeable) label(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return fmt.Errorf("not key=value")
	}
	c.labels = append(c.labels, api.LabelInput{Key: key, Value: value})
	return nil
}

func protocolInput(name string, port int) (api.LoadBalancerProtocolInput, error) {
	switch strings.ToLower(name) {
	case "tcp":
		return api.LoadBalancerProtocolInput{Tcp: &api.TcpProtocolInput{Port: port}}, nil
	case "udp":
		return api.LoadBalancerProtocolInput{Udp: &api.UdpProtocolInput{Port: port}}, nil
	}
	return api.LoadBalancerProtocolInput{}, usageError("--protocol is tcp or udp, not %q", name)
}

// waiting are the flags of commands that can wait.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (f *flags) waiting(until string) *waiting {
	given := &waiting{}
	f.BoolVar(&given.wait, "wait", false, "return only when it is "+until)
	f.DurationVar(&given.timeout, "timeout", 5*time.Minute, "how long to wait; then the exit code is 3")
	return given
}
