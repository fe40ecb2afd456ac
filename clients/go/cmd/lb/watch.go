package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Khan/genqlient/graphql"

	"network-load-balancers/clients/go/api"
)

func watch(ctx context.Context, call *call, args []string) error {
	flags := call.flags("watch")
	which := flags.which()
	names, client, err := flags.parse(args, 1)
	if err != nil {
		return err
	}
	filter := api.LoadBalancerFilter{}
	if len(names) > 0 || which.id != "" {
		id, err := which.find(ctx, client, names)
		if err != nil {
			return err
		}
		filter.Ids = []string{id}
	} else if which.region != "" {
		filter.Region = []string{which.region}
	}
	return flags.follow(ctx, client, &filter)
}

// follow shows events until it is interrupted. Where a connection broke the next one goes on.
func (f *flags) follow(ctx context.Context, client *api.Client, filter *api.LoadBalancerFilter) error {
	var after *string
	start := func(socket graphql.WebSocketClient) (chan api.WatchWsResponse, error) {
		results, _, err := api.Watch(ctx, socket, filter, after)
		return results, err
	}
	for {
		heard := false
		err := again(ctx, func() error {
			err := api.Stream(ctx, client, start, func(result api.WatchWsResponse) (bool, error) {
				if len(result.Errors) > 0 {
					return false, result.Errors
				}
				event := result.Data.LoadBalancers
				heard, after = true, &event.Cursor
				return false, f.showEvent(&event)
			})
			if err == nil {
				return errors.New("the server ended the stream")
			}
			// Whoever has heard something begins to count attempts anew.
			if heard && worthwhile(err) {
				return nil
			}
			return err
		})
		if ctx.Err() != nil {
			// That is how one ends it.
			return nil
		}
		if err != nil {
			return err
		}
		pause(ctx, time.Second)
	}
}

func (f *flags) showEvent(event *api.WatchLoadBalancersLoadBalancerWatchEvent) error {
	if f.output == "json" {
		return f.json(event)
	}
	if event.LoadBalancer != nil {
		_, err := fmt.Fprintf(f.call.out, "%s\t%s\n", event.Type, row(event.LoadBalancer))
		return err
	}
	return nil
}
