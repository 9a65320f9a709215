CREATE TABLE "request_log" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"request_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C",
	"key_id" text COLLATE "C",
	"method" text NOT NULL,
	"path" text NOT NULL,
	"status" bigint NOT NULL,
	"duration_ms" bigint NOT NULL,
	"ip" text NOT NULL,
	"error_code" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "deliveries" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"webhook_id" text COLLATE "C" NOT NULL,
	"event_id" text COLLATE "C" NOT NULL,
	"event_type" text NOT NULL,
	"trigger" text NOT NULL,
	"status" text NOT NULL,
	"attempts" bigint NOT NULL,
	"max_attempts" bigint NOT NULL,
	"by_hand" boolean NOT NULL,
	"next_attempt_at" bigint,
	"owner" text COLLATE "C",
	"body" text,
	"url" text,
	"request_headers" text,
	"response_headers" text,
	"last_response_body" text,
	"last_response_status" bigint,
	"last_error" text,
	"latency_ms" bigint,
	"attempt_log" text NOT NULL,
	"first_attempted_at" bigint,
	"last_attempted_at" bigint,
	"completed_at" bigint,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"url" text NOT NULL,
	"events" text NOT NULL,
	"description" text,
	"headers" text NOT NULL,
	"header_format" text NOT NULL,
	"retry_policy" text NOT NULL,
	"rate_limit" bigint,
	"filter" text,
	"transform" text,
	"metadata" text NOT NULL,
	"version" text NOT NULL,
	"secret" text NOT NULL,
	"secret_hint" text NOT NULL,
	"previous_secret" text,
	"previous_secret_expires_at" bigint,
	"status" text NOT NULL,
	"disabled_reason" text,
	"disabled_at" bigint,
	"consecutive_failures" bigint NOT NULL,
	"last_triggered_at" bigint,
	"last_success_at" bigint,
	"last_failure_at" bigint,
	"next_slot_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "request_log_by_project" ON "request_log" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "request_log_by_request" ON "request_log" USING btree ("request_id");--> statement-breakpoint
CREATE INDEX "deliveries_by_webhook" ON "deliveries" USING btree ("webhook_id","id");--> statement-breakpoint
CREATE INDEX "deliveries_by_event" ON "deliveries" USING btree ("event_id","webhook_id");--> statement-breakpoint
CREATE INDEX "deliveries_due" ON "deliveries" USING btree ("webhook_id","next_attempt_at") WHERE status in ('pending', 'failed') and owner is null;--> statement-breakpoint
CREATE INDEX "deliveries_leased" ON "deliveries" USING btree ("webhook_id","next_attempt_at") WHERE owner is not null;--> statement-breakpoint
CREATE INDEX "deliveries_held" ON "deliveries" USING btree ("webhook_id","next_attempt_at") WHERE status = 'held';--> statement-breakpoint
CREATE INDEX "webhooks_by_project" ON "webhooks" USING btree ("project_id","id");