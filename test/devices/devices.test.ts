import { describe, expect, test } from "bun:test"
import { movableClock } from "../harness/clock"
import { sharedService } from "../harness/shared-service"
import { addSubscriber } from "../inbox/subscriber-app"
import { data, phone } from "./registering"

const clock = movableClock()
const service = await sharedService()
const ALL = "/v1/devices"

describe("a device", () => {
  test("is registered, and known again by its name", async () => {
    const project = await service.project()
    const subscriber_id = await addSubscriber(service, project, "ann")
    const made = await project.post(ALL, phone({ metadata: { theme: "dark" }, app_id: "x.y" }))
    expect(made.status).toBe(201)
    expect(data(made)).toMatchObject({
      ...{ device_id: "phone-1", user_id: "ann", subscriber_id, provider: "fcm" },
      ...{ token: "token-1", scope: { type: "project" }, status: "active", failure_count: 0 },
      ...{ metadata: { theme: "dark" }, app_id: "x.y", last_success_at: null },
    })
    clock.advance({ seconds: 60 })
    const again = await project.post(ALL, phone({ token: "token-2", locale: "de-AT" }))
    expect(again.status).toBe(200)
    expect(data(again)).toMatchObject({
      ...{ id: data(made).id, token: "token-2", locale: "de-AT", metadata: { theme: "dark" } },
      ...{ created_at: data(made).created_at },
    })
    expect(data(again).last_active_at > data(made).last_active_at).toBe(true)
    const stats = { total: 1, active: 1, expired: 0, by_platform: { android: 1, ios: 0 } }
    expect(data(await project.get(`${ALL}/stats`))).toMatchObject(stats)
    for (const name of ["phone-1", data(made).id])
      expect(data(await project.get(`${ALL}/${name}`))).toEqual(data(again))
  })
})
