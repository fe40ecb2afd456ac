package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"network-load-balancers/clients/go/api"
)

func create(ctx context.Context, call *call, args []string) error {
	flags := call.flags("create")
	given := flags.changeable()
	waiting := flags.waiting("in effect")
	var backends, reservations []string
	region := flags.String("region", "", "the `code` of the region to run in")
	vpcName := flags.String("vpc", "", "the `name` of the backends' VPC; the only one where none is given")
	key := flags.String("idempotency-key", rand.Text(), "the same `text` again makes no second one for 24 hours")
	flags.Func("backend", "an `address` that serves; may be given several times", each(&backends))
	flags.Func("ipv4", "the `id` of an IPv4 reservation to bind; may be given several times", each(&reservations))
	names, client, err := flags.parse(args, 1)
	if err != nil {
		return err
	}
	if len(names) == 0 || *region == "" || given.port == nil {
		return usageError("a new load balancer needs a name, --region and --port")
	}
	protocolName := "tcp"
	if given.protocol != nil {
		protocolName = *given.protocol
	}
	protocol, err := protocolInput(protocolName, *given.port)
	if err != nil {
		return err
	}
	vpcID, err := vpc(ctx, client, *vpcName)
	if err != nil {
		return err
	}
	input := api.CreateLoadBalancerInput{
		Name:             names[0],
		Region:           *region,
		Vpc:              vpcID,
		Protocol:         protocol,
		DisplayName:      given.displayName,
		Description:      given.description,
		Labels:           given.labels,
		SessionAffinity:  given.affinity,
		Ipv4Reservations: reservations,
		IdempotencyKey:   key,
	}
	if given.protect != nil {
		input.DeletionProtection = *given.protect
	}
	for _, address := range backends {
		input.Backends = append(input.Backends, api.BackendInput{Address: address})
	}
	// A connection that was cut tells nothing; with the key it can't become two of them.
	var answer *api.CreateLoadBalancerResponse
	err = again(ctx, func() error {
		answer, err = api.CreateLoadBalancer(ctx, client.HTTP, input)
		return err
	})
	if err != nil {
		return err
	}
	if answer.CreateLoadBalancer == nil {
		return refused(nil)
	}
	made, ok := (*answer.CreateLoadBalancer).(*api.CreateLoadBalancerCreateLoadBalancerCreateLoadBalancerPayload)
	if !ok || made.LoadBalancer == nil {
		return refused(*answer.CreateLoadBalancer)
	}
	return flags.settle(ctx, client, waiting, made.LoadBalancer)
}

func update(ctx context.Context, call *call, args []string) error {
	flags := call.flags("update")
	which := flags.which()
	given := flags.changeable()
	waiting := flags.waiting("in effect")
	input := api.UpdateLoadBalancerInput{}
	var reset []string
	flags.Func("name", "a new `name`", into(&input.Name))
	flags.Func("expect-generation", "refuse if it is not at this `generation` any more", intoNumber(&input.ExpectedGeneration))
	flags.Func("reset", "a `field` that goes back to its default: display-name, description, labels, …", each(&reset))
	names, client, err := flags.parse(args, 1)
	if err != nil {
		return err
	}
	for _, field := range reset {
		var known *api.LoadBalancerField
		if err := intoEnum(&known, api.AllLoadBalancerField)(field); err != nil {
			return usageError("--reset %s: %s", field, err)
		}
		input.Reset = append(input.Reset, *known)
	}
	if input.Id, err = which.find(ctx, client, names); err != nil {
		return err
	}
	// What is not given stays nil, is sent as null, and is kept.
	input.DisplayName = given.displayName
	input.Description = given.description
	input.Labels = given.labels
	input.SessionAffinity = given.affinity
	input.DeletionProtection = given.protect
	if err := given.setProtocol(ctx, client, &input); err != nil {
		return err
	}
	answer, err := api.UpdateLoadBalancer(ctx, client.HTTP, input)
	if err != nil {
		return err
	}
	if answer.UpdateLoadBalancer == nil {
		return refused(nil)
	}
	changed, ok := (*answer.UpdateLoadBalancer).(*api.UpdateLoadBalancerUpdateLoadBalancerUpdateLoadBalancerPayload)
	if !ok || changed.LoadBalancer == nil {
		return refused(*answer.UpdateLoadBalancer)
	}
	return flags.settle(ctx, client, waiting, changed.LoadBalancer)
}

// setProtocol sets protocol and port, of which one may be as it is now.
func (c *changeable) setProtocol(ctx context.Context, client *api.Client, input *api.UpdateLoadBalancerInput) error {
	if c.port == nil && c.protocol == nil {
		return nil
	}
	if c.port == nil || c.protocol == nil {
		answer, err := api.LoadBalancer(ctx, client.HTTP, input.Id)
		if err != nil {
			return err
		}
		now := answer.LoadBalancer
		if now == nil {
			return fmt.Errorf("there is no load balancer with the id %s", input.Id)
		}
		if c.protocol == nil {
			c.protocol = &now.ProtocolName
		}
		if c.port == nil {
			if len(now.Ports) != 1 || now.Ports[0].From != now.Ports[0].To {
				return usageError("it has not just one port: give --port")
			}
			c.port = &now.Ports[0].From
		}
		// Half of it was read: nobody may have changed it meanwhile.
		if input.ExpectedGeneration == nil {
			input.ExpectedGeneration = &now.Generation
		}
	}
	protocol, err := protocolInput(*c.protocol, *c.port)
	input.Protocol = &protocol
	return err
}

func remove(ctx context.Context, call *call, args []string) error {
	flags := call.flags("delete")
	which := flags.which()
	waiting := flags.waiting("gone everywhere")
	input := api.DeleteLoadBalancerInput{}
	flags.Func("expect-generation", "refuse if it is not at this `generation` any more", intoNumber(&input.ExpectedGeneration))
	names, client, err := flags.parse(args, 1)
	if err != nil {
		return err
	}
	if input.Id, err = which.find(ctx, client, names); err != nil {
		return err
	}
	answer, err := api.DeleteLoadBalancer(ctx, client.HTTP, input)
	if err != nil {
		return err
	}
	if answer.DeleteLoadBalancer == nil {
		return refused(nil)
	}
	if _, ok := (*answer.DeleteLoadBalancer).(*api.DeleteLoadBalancerDeleteLoadBalancerDeleteLoadBalancerPayload); !ok {
		return refused(*answer.DeleteLoadBalancer)
	}
	if waiting.wait {
		outcome, _, err := flags.wait(ctx, client, waiting, input.Id, nil)
		if err != nil {
			return err
		}
		if outcome != api.SettleOutcomeDeleted {
			return fmt.Errorf("it is not deleted but %s", strings.ToLower(string(outcome)))
		}
	}
	if flags.output == "json" {
		return flags.json(map[string]string{"id": input.Id})
	}
	fmt.Fprintln(call.out, "deleted")
	return nil
}
