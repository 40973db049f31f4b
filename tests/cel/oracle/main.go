// Records what Kubernetes' own code says about selectors: one JSON case a line in, one answer a line out.
//
//	go mod init oracle && go get k8s.io/dynamic-resource-allocation@v0.36.6 && go mod tidy && go build
//
// v0.36.6 is Kubernetes 1.36, v0.37.2 is 1.37. A case is {"expression", "device"} as in `recorded.json`.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

type attr struct {
	Int      *int64   `json:"int"`
	Bool     *bool    `json:"bool"`
	String   *string  `json:"string"`
	Version  *string  `json:"version"`
	Ints     []int64  `json:"ints"`
	Bools    []bool   `json:"bools"`
	Strings  []string `json:"strings"`
	Versions []string `json:"versions"`
}
type dev struct {
	Driver     string                       `json:"driver"`
	Attributes map[string]attr              `json:"attributes"`
	Capacity   map[string]map[string]string `json:"capacity"`
	Allow      *bool                        `json:"allowMultipleAllocations"`
}
type kase struct {
	Expression string `json:"expression"`
	Device     dev    `json:"device"`
}
type answer struct {
	Expect string `json:"expect"`
	Detail string `json:"detail"`
	Max    uint64 `json:"maxCost"`
	Cost   uint64 `json:"cost"`
	Value  string `json:"value"`
}

func run(c kase) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{Expect: "panic", Detail: fmt.Sprint(r)}
		}
	}()
	comp := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	res := comp.CompileCELExpression(c.Expression, cel.Options{})
	if res.Error != nil {
		return answer{Expect: "compile_error", Detail: res.Error.Detail}
	}
	d := cel.Device{Driver: c.Device.Driver, AllowMultipleAllocations: c.Device.Allow}
	d.Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
	for k, v := range c.Device.Attributes {
		d.Attributes[resourceapi.QualifiedName(k)] = resourceapi.DeviceAttribute{IntValue: v.Int, BoolValue: v.Bool, StringValue: v.String, VersionValue: v.Version,
			IntValues: v.Ints, BoolValues: v.Bools, StringValues: v.Strings, VersionValues: v.Versions}
	}
	d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
	for k, v := range c.Device.Capacity {
		q, err := resource.ParseQuantity(v["value"])
		if err != nil {
			return answer{Expect: "runtime_error", Detail: "capacity: " + err.Error()}
		}
		d.Capacity[resourceapi.QualifiedName(k)] = resourceapi.DeviceCapacity{Value: q}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	ok, details, err := res.DeviceMatches(ctx, d)
	if details != nil && details.ActualCost() != nil {
		a.Cost = *details.ActualCost()
	}
	a.Max = res.MaxCost
	if err != nil {
		a.Expect, a.Detail = "runtime_error", err.Error()
		if strings.Contains(a.Detail, "could not be converted to bool") {
			v, _, e := res.Program.Eval(map[string]any{"device": map[string]any{}})
			if e == nil {
				a.Value = fmt.Sprintf("%v", v.Value())
			}
		}
		return a
	}
	a.Expect = map[bool]string{true: "match", false: "nomatch"}[ok]
	return a
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	dec := json.NewDecoder(in)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for dec.More() {
		var c kase
		if err := dec.Decode(&c); err != nil {
			panic(err)
		}
		ch := make(chan answer, 1)
		go func() { ch <- run(c) }()
		select {
		case a := <-ch:
			enc.Encode(a)
		case <-time.After(20 * time.Second):
			enc.Encode(answer{Expect: "hang"})
		}
	}
}
