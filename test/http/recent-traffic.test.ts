import { expect, spyOn, test } from "bun:test"
import { RecentTraffic } from "../../src/http/recent-traffic"
import { testService } from "../harness/service"

test("a request counts as recent for 20 ms, and none before the first", () => {
  const time = spyOn(performance, "now")
  try {
    time.mockReturnValue(1000)
    const traffic = new RecentTraffic()
    expect(traffic.isRecent()).toBe(false)
    traffic.note()
    time.mockReturnValue(1019)
    expect(traffic.isRecent()).toBe(true)
    time.mockReturnValue(1020)
    expect(traffic.isRecent()).toBe(false)
  } finally {
    time.mockRestore()
  }
})

test("each request is noted when it comes, not when it is answered", async () => {
  await using service = await testService()
  const { get } = await service.project()
  const noted = spyOn(service.parts.traffic, "note")
  const answer = get("/v1/emails")
  expect(noted).toHaveBeenCalledTimes(1)
  expect((await answer).status).toBe(200)
})
