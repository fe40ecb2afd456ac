package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"network-load-balancers/clients/go/api"
)

// How many are asked for at once.
const page = 50

func list(ctx context.Context, call *call, args []string) error {
	flags := call.flags("list")
	filter := api.LoadBalancerFilter{}
	flags.Func("region", "only those in the region with this `code`", each(&filter.Region))
	flags.Func("name", "only those whose name contains this `text`", into(&filter.NameContains))
	flags.Func("address", "only those with this virtual or backend `address`", into(&filter.Address))
	_, client, err := flags.parse(args, 0)
	if err != nil {
		return err
	}
	all := []api.SummaryFields{}
	var after *string
	for more := true; more; {
		answer, err := api.LoadBalancers(ctx, client.HTTP, page, after, &filter)
		if err != nil {
			return err
		}
		all = append(all, answer.LoadBalancers.Nodes...)
		after = answer.LoadBalancers.PageInfo.EndCursor
		more = answer.LoadBalancers.PageInfo.HasNextPage && after != nil
	}
	if flags.output == "json" {
		return flags.json(all)
	}
	table := tabwriter.NewWriter(call.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tREGION\tPROTOCOL\tADDRESSES\tPHASE\tSERVING")
	for _, one := range all {
		fmt.Fprintln(table, row(&one))
	}
	return table.Flush()
}

func row(one *api.SummaryFields) string {
	addresses := make([]string, len(one.Addresses))
	for i, address := range one.Addresses {
		addresses[i] = address.Address
	}
	counts := one.Status.BackendCounts
	return strings.Join([]string{
		one.Name,
		regionOf(one.Region),
		withPorts(one.ProtocolName, one.Ports),
		strings.Join(addresses, ","),
		string(one.Status.Phase),
		fmt.Sprintf("%d/%d", counts.Serving, counts.Total),
	}, "\t")
}

// withPorts is a protocol of any kind: TCP 80, TCP 8000-8100, ESP.
func withPorts[T any, P interface {
	*T
	GetFrom() int
	GetTo() int
}](name string, ports []T) string {
	words := []string{name}
	for i := range ports {
		from, to := P(&ports[i]).GetFrom(), P(&ports[i]).GetTo()
		if from == to {
			words = append(words, fmt.Sprint(from))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", from, to))
		}
	}
	return strings.Join(words, " ")
}

func get(ctx context.Context, call *call, args []string) error {
	flags := call.flags("get")
	which := flags.which()
	names, client, err := flags.parse(args, 1)
	if err != nil {
		return err
	}
	id, err := which.find(ctx, client, names)
	if err != nil {
		return err
	}
	answer, err := api.LoadBalancer(ctx, client.HTTP, id)
	if err != nil {
		return err
	}
	if answer.LoadBalancer == nil {
		return fmt.Errorf("there is no load balancer with the id %s", id)
	}
	return flags.show(answer.LoadBalancer)
}

func (f *flags) show(one *api.LoadBalancerFields) error {
	if f.output == "json" {
		return f.json(one)
	}
	table := tabwriter.NewWriter(f.call.out, 0, 0, 2, ' ', 0)
	line := func(name string, values ...any) {
		fmt.Fprintf(table, "%s:\t%s\n", name, strings.TrimSuffix(fmt.Sprintln(values...), "\n"))
	}
	line("Name", one.Name)
	line("Id", one.Id)
	optional(table, "Display name", one.DisplayName)
	optional(table, "Description", one.Description)
	for _, label := range one.Labels {
		line("Label", label.Key+"="+label.Value)
	}
	line("Region", regionOf(one.Region))
	line("VPC", one.Vpc.Name)
	line("Protocol", withPorts(one.ProtocolName, one.Ports))
	line("Affinity", one.SessionAffinity)
	for _, address := range one.Addresses {
		line("Address", address.Address)
	}
	line("Phase", one.Status.Phase)
	line("Generation", one.Generation, "in effect:", one.Status.ObservedGeneration)
	for _, backend := range one.Backends.Nodes {
		serving := "not serving"
		if backend.Serving {
			serving = "serving"
		}
		line("Backend", backend.Address, serving, string(backend.AdminState), string(backend.Health.State))
	}
	for _, condition := range one.Status.Conditions {
		line(condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	return table.Flush()
}

func optional(out io.Writer, name string, value *string) {
	if value != nil {
		fmt.Fprintf(out, "%s:\t%s\n", name, *value)
	}
}
