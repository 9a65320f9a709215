CREATE TABLE "accounts" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"plan" text NOT NULL,
	"status" text NOT NULL,
	"sending_status" text NOT NULL,
	"sending_status_reason" text,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "instance_values" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"name" text NOT NULL,
	"lookup" text NOT NULL,
	"key_hash" text NOT NULL,
	"prefix" text NOT NULL,
	"last4" text NOT NULL,
	"scopes" text NOT NULL,
	"ip_addresses" text NOT NULL,
	"created_by" text NOT NULL,
	"expires_at" bigint,
	"last_used_at" bigint,
	"last_used_ip" text,
	"created_at" bigint NOT NULL,
	"revoked_at" bigint
);
--> statement-breakpoint
CREATE TABLE "events" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"position" bigint DEFAULT (pg_current_xact_id()::text)::bigint NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"subject_id" text COLLATE "C",
	"type" text NOT NULL,
	"data" text NOT NULL,
	"detail" text,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency" (
	"request" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"body_hash" text NOT NULL,
	"status" bigint NOT NULL,
	"answer" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mailbox_mails" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"email_id" text COLLATE "C",
	"mail_from" text NOT NULL,
	"recipients" text NOT NULL,
	"to_address" text NOT NULL,
	"from_address" text NOT NULL,
	"subject" text NOT NULL,
	"subject_key" text NOT NULL,
	"raw" "bytea" NOT NULL,
	"size" bigint NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "mailbox_recipients" (
	"mail_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"address" text NOT NULL,
	CONSTRAINT "mailbox_recipients_mail_id_address_pk" PRIMARY KEY("mail_id","address")
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"message_id" text COLLATE "C" NOT NULL,
	"attempt" bigint NOT NULL,
	"provider" text NOT NULL,
	"started_at" bigint NOT NULL,
	"duration_ms" bigint NOT NULL,
	"outcome" text NOT NULL,
	"mx" text,
	"tls" text,
	"smtp_code" bigint,
	"enhanced_code" text,
	"response" text,
	"transcript" text NOT NULL,
	CONSTRAINT "attempts_message_id_attempt_pk" PRIMARY KEY("message_id","attempt")
);
--> statement-breakpoint
CREATE TABLE "message_contents" (
	"message_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"content" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "message_raws" (
	"message_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"raw" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "message_tags" (
	"project_id" text COLLATE "C" NOT NULL,
	"tag" text NOT NULL,
	"message_id" text COLLATE "C" NOT NULL,
	CONSTRAINT "message_tags_project_id_tag_message_id_pk" PRIMARY KEY("project_id","tag","message_id")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"channel" text NOT NULL,
	"status" text NOT NULL,
	"status_reason" text,
	"recipient" text NOT NULL,
	"sender" text,
	"sender_domain" text,
	"subject" text,
	"subject_key" text,
	"recipients" text NOT NULL,
	"envelope" text,
	"batch_id" text COLLATE "C",
	"stream" text NOT NULL,
	"source" text NOT NULL,
	"tags" text NOT NULL,
	"metadata" text NOT NULL,
	"api_key_id" text COLLATE "C",
	"idempotency_key" text,
	"rfc_message_id" text,
	"sandbox" boolean NOT NULL,
	"provider" text,
	"attempts" bigint NOT NULL,
	"next_attempt_at" bigint,
	"error" text,
	"last_event_type" text,
	"last_event_at" bigint,
	"queued_at" bigint,
	"sent_at" bigint,
	"delivered_at" bigint,
	"bounced_at" bigint,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"name" text NOT NULL,
	"slug" text NOT NULL,
	"status" text NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "counters" (
	"project_id" text COLLATE "C" NOT NULL,
	"name" text NOT NULL,
	"shard" bigint NOT NULL,
	"value" bigint NOT NULL,
	CONSTRAINT "counters_project_id_name_shard_pk" PRIMARY KEY("project_id","name","shard")
);
--> statement-breakpoint
CREATE TABLE "jobs" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"project_id" text COLLATE "C",
	"payload" text NOT NULL,
	"state" bigint NOT NULL,
	"priority" bigint NOT NULL,
	"run_at" bigint NOT NULL,
	"attempt" bigint NOT NULL,
	"owner" text,
	"lease_until" bigint,
	"last_error" text,
	"created_at" bigint NOT NULL,
	"dead_at" bigint
);
--> statement-breakpoint
ALTER TABLE "mailbox_recipients" ADD CONSTRAINT "mailbox_recipients_mail_id_mailbox_mails_id_fk" FOREIGN KEY ("mail_id") REFERENCES "public"."mailbox_mails"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "message_contents" ADD CONSTRAINT "message_contents_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "message_raws" ADD CONSTRAINT "message_raws_message_id_messages_id_fk" FOREIGN KEY ("message_id") REFERENCES "public"."messages"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_by_lookup" ON "api_keys" USING btree ("lookup");--> statement-breakpoint
CREATE INDEX "api_keys_by_project" ON "api_keys" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "events_by_project" ON "events" USING btree ("project_id","position","id");--> statement-breakpoint
CREATE INDEX "events_by_subject" ON "events" USING btree ("subject_id","id");--> statement-breakpoint
CREATE INDEX "idempotency_by_age" ON "idempotency" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "mailbox_mails_by_project" ON "mailbox_mails" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "mailbox_recipients_by_address" ON "mailbox_recipients" USING btree ("project_id","address","mail_id");--> statement-breakpoint
CREATE INDEX "messages_by_project" ON "messages" USING btree ("project_id","channel","id");--> statement-breakpoint
CREATE INDEX "messages_by_status" ON "messages" USING btree ("project_id","status","id");--> statement-breakpoint
CREATE INDEX "messages_by_recipient" ON "messages" USING btree ("project_id","recipient","id");--> statement-breakpoint
CREATE UNIQUE INDEX "projects_by_slug" ON "projects" USING btree ("account_id","slug");--> statement-breakpoint
CREATE INDEX "jobs_ready" ON "jobs" USING btree ("priority","run_at","id") WHERE state = 0;--> statement-breakpoint
CREATE INDEX "jobs_leased" ON "jobs" USING btree ("lease_until") WHERE state = 1;--> statement-breakpoint
CREATE INDEX "jobs_dead" ON "jobs" USING btree ("dead_at") WHERE state = 2;