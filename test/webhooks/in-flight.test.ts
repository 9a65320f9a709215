import { describe, expect, test } from "bun:test"
import { attemptNow } from "../../src/webhooks/send-test"
import { disable } from "../../src/webhooks/status"
import { receiver } from "../fakes/receiver"
import { testHooks, until } from "../harness/hooks"

describe("a delivery whose attempt runs", () => {
  test("is not attempted by anybody else, nor held, and its end is written", async () => {
    await using hooks = await testHooks()
    const slow = Promise.withResolvers<Response>()
    using fake = receiver(() => slow.promise)
    const endpoint = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await hooks.emit(1)
    await fake.arrived(1)
    const [running] = await hooks.deliveries(endpoint.id)
    const again = attemptNow(hooks.parts, hooks.project_id, running?.id ?? "")
    await expect(again).rejects.toMatchObject({ code: "conflict" })
    await hooks.store.tx((tx) => disable(tx, endpoint, "paused"))
    expect((await hooks.deliveries(endpoint.id)).map(({ status }) => status)).toEqual(["pending"])
    slow.resolve(new Response("taken"))
    await until(async () => (await hooks.deliveries(endpoint.id))[0]?.status === "success")
    expect(fake.received).toHaveLength(1)
  })

  test("is held when it fails and its endpoint was disabled meanwhile", async () => {
    await using hooks = await testHooks()
    const slow = Promise.withResolvers<Response>()
    using fake = receiver(() => slow.promise)
    const endpoint = await hooks.endpoint({ url: fake.url })
    await hooks.deliver()
    await hooks.emit(1)
    await fake.arrived(1)
    await hooks.store.tx((tx) => disable(tx, endpoint, "paused"))
    slow.resolve(new Response("no", { status: 500 }))
    await until(async () => (await hooks.deliveries(endpoint.id))[0]?.status === "held")
    expect(await hooks.deliveries(endpoint.id)).toMatchObject([{ attempts: 1, owner: null }])
  })

  test("is attempted by the next loop when the first one stopped in the midst of it", async () => {
    await using hooks = await testHooks()
    const slow = Promise.withResolvers<Response>()
    using fake = receiver((_, number) => (number === 1 ? slow.promise : new Response("taken")))
    const { id } = await hooks.endpoint({ url: fake.url })
    const first = await hooks.deliver()
    await hooks.emit(1)
    await fake.arrived(1)
    await first.stop(0)
    await hooks.deliver()
    await until(async () => (await hooks.deliveries(id))[0]?.status === "success")
    slow.resolve(new Response("no", { status: 500 })) // too late: the claim is another's
    await until(() => first.running === 0)
    expect(await hooks.deliveries(id)).toMatchObject([{ status: "success", attempts: 1 }])
  })
})
