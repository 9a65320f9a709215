CREATE TABLE "complaint_holds" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"dimension" text NOT NULL,
	"name" text NOT NULL,
	"held_at" bigint,
	"complaint_rate" text NOT NULL,
	"window_start" bigint,
	"base" text,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "reputation_hours" (
	"account_id" uuid NOT NULL,
	"dimension" text NOT NULL,
	"name" text NOT NULL,
	"hour" bigint NOT NULL,
	"project_id" uuid NOT NULL,
	"shard" bigint NOT NULL,
	"sent" bigint NOT NULL,
	"delivered" bigint NOT NULL,
	"bounced" bigint NOT NULL,
	"complained" bigint NOT NULL,
	CONSTRAINT "reputation_hours_account_id_dimension_name_hour_project_id_shard_pk" PRIMARY KEY("account_id","dimension","name","hour","project_id","shard")
);
--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "reputation" text;--> statement-breakpoint
CREATE UNIQUE INDEX "complaint_holds_by_name" ON "complaint_holds" USING btree ("project_id","dimension","name");--> statement-breakpoint
CREATE INDEX "complaint_holds_by_account" ON "complaint_holds" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "reputation_hours_by_hour" ON "reputation_hours" USING btree ("hour","account_id");--> statement-breakpoint
CREATE INDEX "reputation_hours_complained" ON "reputation_hours" USING btree ("account_id","hour") WHERE complained > 0;