package main

import (
	"context"
	"fmt"
	"strings"

	"network-load-balancers/clients/go/api"
)

// which says which load balancer is meant: by name, and region where the name isn't enough, or id.
type which struct{ id, region string }

func (f *flags) which() *which {
	given := &which{}
	f.StringVar(&given.id, "id", "", "the load balancer's `id`, instead of its name")
	f.StringVar(&given.region, "region", "", "the `code` of its region, where several have the name")
	return given
}

// find answers the id of the load balancer that is meant.
func (w *which) find(ctx context.Context, client *api.Client, args []string) (string, error) {
	switch {
	case w.id != "" && len(args) > 0:
		return "", usageError("give a name or --id, not both")
	case w.id != "":
		return w.id, nil
	case len(args) == 0:
		return "", usageError("which load balancer? Give its name or --id")
	}
	name := args[0]
	filter := api.LoadBalancerFilter{NameContains: &name}
	if w.region != "" {
		filter.Region = []string{w.region}
	}
	answer, err := api.LoadBalancersNamed(ctx, client.HTTP, filter)
	if err != nil {
		return "", err
	}
	var ids, regions []string
	for _, one := range answer.LoadBalancers.Nodes {
		if one.Name == name {
			ids = append(ids, one.Id)
			regions = append(regions, regionOf(one.Region))
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("there is no load balancer named %q", name)
	case 1:
		return ids[0], nil
	}
	return "", usageError("several are named %q: give one of --region %s", name, strings.Join(regions, ", "))
}

// regionOf is the code of a region; a load balancer without one is everywhere.
func regionOf[T any, P interface {
	*T
	GetCode() string
}](region P) string {
	if region == nil {
		return "global"
	}
	return region.GetCode()
}

// vpc answers the id of the VPC with a name, or of the only one there is.
func vpc(ctx context.Context, client *api.Client, name string) (string, error) {
	if name != "" {
		answer, err := api.VpcByName(ctx, client.HTTP, name)
		if err != nil {
			return "", err
		}
		if answer.VpcByName == nil {
			return "", fmt.Errorf("there is no VPC named %q", name)
		}
		return answer.VpcByName.Id, nil
	}
	answer, err := api.Vpcs(ctx, client.HTTP)
	if err != nil {
		return "", err
	}
	nodes := answer.Vpcs.Nodes
	if len(nodes) == 1 {
		return nodes[0].Id, nil
	}
	names := make([]string, len(nodes))
	for i, one := range nodes {
		names[i] = one.Name
	}
	return "", usageError("which VPC? Give --vpc; there are: %s", strings.Join(names, ", "))
}
