import { expect, test } from "bun:test"
import { sharedService } from "../harness/shared-service"
import { data, phone } from "./registering"

const service = await sharedService()
const ALL = "/v1/devices"

test("registrations at the same moment leave one device a name and a token, and right totals", async () => {
  const project = await service.project()
  const { post, get, call } = project
  const names = ["a", "b", "c"]
  for (let round = 0; round < 6; round++) {
    const all = names.flatMap((device_id) =>
      names.map((token) => post(ALL, phone({ device_id, token }))),
    )
    const changes = names.map((name) =>
      call("PATCH", `${ALL}/${name}`, { body: { token: names[round % 3] } }),
    )
    const answers = await Promise.all([...all, ...changes])
    for (const { status } of answers) expect([200, 201, 404]).toContain(status)
    const { body } = await get(ALL)
    const columns = ["device_id", "token"].map((name) =>
      body.data.map((row: Record<string, string>) => row[name]),
    )
    for (const column of columns) expect(new Set(column).size).toBe(column.length)
    const { total, active, by_platform, by_provider } = data(await get(`${ALL}/stats`))
    const n = body.data.length
    expect([total, active, by_platform.android, by_provider.fcm]).toEqual([n, n, n, n])
  }
})
