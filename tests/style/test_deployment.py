"""The deployment files: linted with their tools' own schemas, and what they say about Ringside is true."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from starlette.routing import Mount, Route, WebSocketRoute

from datastore.dynamo.declaration import definition
from datastore.dynamo.entity import TTL
from server.__main__ import COMMANDS
from server.app import _routes
from server.http.browser_pages import Elements, Explorer
from server.http.endpoint import UNCHECKED, GraphQLEndpoint
from server.http.process import GRACE_SECONDS
from server.settings import Settings, variable
from server.telemetry import Metrics
from tests.deployment_files import DEPLOY, ROLES, UNITS, cron_jobs, pod_specs, policy, resource, resources, template

TEMPLATES = sorted(DEPLOY.glob("*.cloudformation.yaml"))
SETTINGS = {variable(name) for name in Settings.model_fields}


# ── CloudFormation and IAM ──


@pytest.mark.parametrize("name", [file.name for file in TEMPLATES])
def test_cfn_lint_accepts_a_template(name: str) -> None:
    """With AWS's own schemas, which the package brings."""
    command = [str(Path(sys.executable).with_name("cfn-lint")), "--regions", "eu-central-1", "--", str(DEPLOY / name)]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_cloudformation_makes_the_declared_table() -> None:
    """Key for key what `ringside table create` makes, with what protects it besides."""
    made = template("table.cloudformation.yaml")["Resources"]["Table"]
    properties = dict(made["Properties"])
    assert made["DeletionPolicy"] == made["UpdateReplacePolicy"] == "Retain"
    assert properties.pop("DeletionProtectionEnabled") is True
    assert properties.pop("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}
    assert properties.pop("SSESpecification") == {"SSEEnabled": True}
    assert properties.pop("TimeToLiveSpecification") == {"AttributeName": TTL, "Enabled": True}
    assert properties == definition("TableName")


def test_the_guide_turns_on_what_a_restored_table_lacks() -> None:
    """All that the templates turn on besides keys and encryption; DynamoDB restores a table without it."""
    guide = (DEPLOY.parent / "docs/operations.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"It restores into a new.*?```sh\n(.*?)```", guide, re.DOTALL)
    for turned_on in (
        f"Enabled=true,AttributeName={TTL}",
        "PointInTimeRecoveryEnabled=true",
        "--deletion-protection-enabled",
    ):
        assert turned_on in commands


def test_terraform_makes_the_declared_table() -> None:
    """Keys, attributes and indexes as declared; the time to live on its attribute."""
    text = (DEPLOY / "table.tf").read_text(encoding="utf-8")
    wanted = definition("ringside")
    assert re.findall(r'attribute \{\n\s+name = "(\w+)"\n\s+type = "S"', text) == [
        attribute["AttributeName"] for attribute in wanted["AttributeDefinitions"]
    ]
    indexes = re.findall(
        r'global_secondary_index \{\s+name\s+= "(\w+)"\s+hash_key\s+= "(\w+)"\s+range_key\s+= "(\w+)"\s+'
        r'projection_type = "ALL"',
        text,
    )
    assert indexes == [
        (index["IndexName"], *(key["AttributeName"] for key in index["KeySchema"]))
        for index in wanted["GlobalSecondaryIndexes"]
    ]
    assert re.search(r'\n  hash_key\s+= "pk"\n  range_key\s+= "sk"\n', text)
    assert f'attribute_name = "{TTL}"' in text


@pytest.mark.parametrize("role", ROLES)
def test_cloudformation_grants_what_the_policy_of_a_role_grants(role: str) -> None:
    granted = template("access.cloudformation.yaml")["Resources"][f"{role.title()}Policy"]["Properties"]
    expected = policy(role, "TableArn")
    for statement in granted["PolicyDocument"]["Statement"]:
        statement["Resource"] = statement["Resource"].replace("${TableArn}", "TableArn")
    assert granted["PolicyDocument"] == expected


@pytest.mark.parametrize("role", ROLES)
def test_no_policy_has_a_wildcard_besides_the_indexes(role: str) -> None:
    stars = re.findall(r'"[^"]*\*[^"]*"', json.dumps(policy(role)))
    assert stars == ['"arn:aws:dynamodb:REGION:ACCOUNT:table/ringside/index/*"']


def test_ecs_runs_the_image_as_it_should_be_run() -> None:
    """Read-only, as the image's user, with known settings, secrets that are not in the template, and time to stop."""
    parts = template("ecs.cloudformation.yaml")["Resources"]
    for name, role in (("ServiceTask", "ServiceRole"), ("DailyTask", "JobsRole")):
        task = parts[name]["Properties"]
        assert task["TaskRoleArn"] == f"{role}.Arn"
        (container,) = task["ContainerDefinitions"]
        assert container["ReadonlyRootFilesystem"] is True
        assert container["User"] == "10001:10001"
        variables = [each["Name"] for each in (*container["Environment"], *container["Secrets"])]
        assert set(variables) <= SETTINGS
        assert "RINGSIDE_SECRETS" not in [each["Name"] for each in container["Environment"]]
    (service,) = parts["ServiceTask"]["Properties"]["ContainerDefinitions"]
    assert service["StopTimeout"] > GRACE_SECONDS
    assert "/livez" in service["HealthCheck"]["Command"][-1]
    assert parts["DailyTask"]["Properties"]["ContainerDefinitions"][0]["Command"][0] in COMMANDS
    assert parts["ServiceRole"]["Properties"]["ManagedPolicyArns"] == ["ServicePolicy"]
    assert parts["JobsRole"]["Properties"]["ManagedPolicyArns"] == ["JobsPolicy"]


def test_the_target_group_of_ecs_does_not_ask_for_the_table() -> None:
    """ECS ends tasks whose target is unhealthy. A table that is away ends no process: it recovers by itself."""
    described = template("ecs.cloudformation.yaml")["Parameters"]["TargetGroup"]["Description"]
    assert "health check is /livez" in described


def test_each_parameter_of_ecs_has_a_description() -> None:
    """The guide says so, and has nothing else on most of them."""
    parameters = template("ecs.cloudformation.yaml")["Parameters"]
    assert [name for name, parameter in parameters.items() if "Description" not in parameter] == []


def test_the_guide_makes_the_image_and_the_cluster_that_ecs_expects() -> None:
    """`docker build` makes an image for the builder's own processor, and a new account has no cluster."""
    stack = template("ecs.cloudformation.yaml")
    (processor,) = {
        part["Properties"]["RuntimePlatform"]["CpuArchitecture"]
        for part in stack["Resources"].values()
        if part["Type"] == "AWS::ECS::TaskDefinition"
    }
    guide = (DEPLOY.parent / "docs/operations.md").read_text(encoding="utf-8")
    before, _, _ = guide.partition("--stack-name ringside ")
    assert f"docker buildx build --platform linux/{processor.lower()} " in before
    assert f"aws ecs create-cluster --cluster-name {stack['Parameters']['Cluster']['Default']} " in before


def test_the_guide_keeps_commands_that_print_secrets_or_members_data_out_of_the_log_of_ecs() -> None:
    """`run-task` has no other output than the log, which is kept for as long as the guide says."""
    guide, commands = ((DEPLOY.parent / "docs" / name).read_text("utf-8") for name in ("operations.md", "commands.md"))
    (section,) = re.findall(r"\n## ECS\n(.*?)\n## ", guide, re.DOTALL)
    days = template("ecs.cloudformation.yaml")["Resources"]["Log"]["Properties"]["RetentionInDays"]
    assert f"is in the log, for {days} days" in " ".join(section.split())
    (kept_out,) = re.findall(r"run nothing in this way that prints.*?\((.*?)\)", section)
    printing = re.findall(r"^\| `ringside (.+?)` \|.*Authorization: Bearer", commands, re.MULTILINE)
    assert set(re.findall("`(.+?)`", kept_out)) == {*printing, "export …"}


def test_ecs_hides_what_is_for_operators_if_it_knows_the_listener() -> None:
    """A load balancer passes on all paths otherwise; the guide's nginx hides the same ones."""
    loaded = template("ecs.cloudformation.yaml")
    rule = loaded["Resources"]["HiddenPaths"]
    (condition,), (action,) = rule["Properties"]["Conditions"], rule["Properties"]["Actions"]
    assert (rule["Condition"], loaded["Parameters"]["Listener"]["Default"]) == ("HasListener", "")
    assert action == {"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}
    nginx = (DEPLOY.parent / "docs/deployment.md").read_text(encoding="utf-8")
    assert f"^/({'|'.join(condition['PathPatternConfig']['Values']).replace('/', '')})$ {{ return 404; }}" in nginx


def test_both_tasks_of_ecs_have_the_mail_server_and_the_sender() -> None:
    """The service sends the emails that confirm an address, and the daily task all others."""
    loaded = template("ecs.cloudformation.yaml")
    for name in ("ServiceTask", "DailyTask"):
        (container,) = loaded["Resources"][name]["Properties"]["ContainerDefinitions"]
        assert {"Name": "RINGSIDE_SMTP_URL", "ValueFrom": "SmtpUrl"} in container["Secrets"]
        assert {"Name": "RINGSIDE_MAIL_FROM", "Value": "MailFrom"} in container["Environment"]
    assert loaded["Parameters"]["MailFrom"]["Default"] == ""  # as without the setting
    (secrets,) = loaded["Resources"]["ExecutionRole"]["Properties"]["Policies"]
    (readable,) = secrets["PolicyDocument"]["Statement"]
    assert readable["Resource"] == ["SigningSecrets", "SmtpUrl"]


# ── Kubernetes ──


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema in which no object may have other properties than the declared ones."""
    for part in (schema, *schema.get("$defs", {}).values()):
        if "properties" in part:
            part["additionalProperties"] = False
    return schema


def schema_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a resource, made from the types of Kubernetes' API that lightkube-models has."""
    module = (
        manifest["apiVersion"].replace("/", "_").replace(".k8s.io", "") if "/" in manifest["apiVersion"] else "core_v1"
    )
    kind = getattr(import_module(f"lightkube.models.{module}"), manifest["kind"])
    return strict(msgspec.json.schema(kind, ref_template="#/$defs/{name}"))


def is_of_gateway(manifest: Mapping[str, Any]) -> bool:
    return str(manifest["apiVersion"]).startswith("gateway.networking.k8s.io/")


@pytest.mark.parametrize(
    "manifest",
    [each for each in resources() if not is_of_gateway(each)],
    ids=lambda each: f"{each['kind']}/{each['metadata']['name']}",
)
def test_a_manifest_is_what_kubernetes_expects(manifest: dict[str, Any]) -> None:
    """Each field is known and has the right type."""
    jsonschema.validate(manifest, schema_of(manifest))


def test_a_misspelt_field_of_a_manifest_is_found() -> None:
    """The control of the test above, at the top and deep inside."""
    deployment = resource("Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
    with pytest.raises(jsonschema.ValidationError, match="livenesProbe"):
        jsonschema.validate(deployment, schema_of(deployment))


def test_pods_may_do_nothing_that_they_need_not_do() -> None:
    """What Kubernetes' "restricted" standard asks for, a read-only file system and limits besides."""
    for pod in pod_specs():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["runAsGroup"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]


def test_the_pods_probes_and_labels_fit_the_service() -> None:
    """A table that is away makes a pod unready and does not restart it; the budget and the service mean these pods."""
    deployment = resource("Deployment")["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    paths = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    assert resource("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert resource("Service")["spec"]["selector"] == labels
    assert resource("PodDisruptionBudget")["spec"]["minAvailable"] < deployment["replicas"]
    pause = int(re.findall(r"sleep\((\d+)\)", container["lifecycle"]["preStop"]["exec"]["command"][-1])[0])
    assert deployment["template"]["spec"]["terminationGracePeriodSeconds"] > pause + GRACE_SECONDS
    assert (
        resource("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"][0] in COMMANDS
    )


def test_the_service_and_the_daily_job_read_the_secret_of_the_mail_server() -> None:
    """The service sends the emails that confirm an address, but starts without a mail server too."""
    service, daily = (
        [source["secretRef"] for source in pod["containers"][0]["envFrom"] if "secretRef" in source]
        for pod in pod_specs()
        if pod["containers"][0].get("args") in (None, ["emails"])
    )
    assert service == [{"name": "ringside"}, {"name": "ringside-mail", "optional": True}]
    assert daily == [{"name": "ringside"}, {"name": "ringside-mail"}]


def test_scheduled_jobs_run_existing_commands_one_at_a_time() -> None:
    """With the account of the jobs, and an end before the next one begins."""
    names = {job["metadata"]["name"] for job in cron_jobs()}
    assert names == {"ringside-daily", "ringside-webhooks"}
    for job in cron_jobs():
        assert job["spec"]["concurrencyPolicy"] == "Forbid"
        pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] == "ringside-jobs"
        assert pod["containers"][0]["args"][0] in COMMANDS


def is_passed_on(path: str, match: Mapping[str, str]) -> bool:
    """As the Gateway API defines it: a prefix is one of whole parts. For regular expressions it leaves that open."""
    if match["type"] == "RegularExpression":
        return bool(re.fullmatch(match["value"], path))
    return path == match["value"] or (match["type"] == "PathPrefix" and path.startswith(f"{match['value']}/"))


def test_manifests_name_existing_settings_and_the_paths_that_are_public() -> None:
    """The route passes on whatever the service has for clients, and nothing that is for operators."""
    assert resource("ConfigMap")["data"].keys() <= SETTINGS
    matches = [match["path"] for rule in resource("HTTPRoute")["spec"]["rules"] for match in rule["matches"]]
    settings = Settings(secrets=("x" * 32,), front_page=True)
    routes = _routes(settings, GraphQLEndpoint(Explorer()), Explorer(), Elements(), Metrics())
    served = {route.path for route in routes if isinstance(route, Route | WebSocketRoute)}
    served |= {f"{route.path}/file.js" for route in routes if isinstance(route, Mount)}
    asked_for = {re.sub(r"\{.+?\}", "C4x_-Tbr", path) for path in served}
    assert {path for path in asked_for if not any(is_passed_on(path, match) for match in matches)} == UNCHECKED
    assert [match for match in matches if not any(is_passed_on(path, match) for path in asked_for)] == []
    guide = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"The route passes on\s(.+?)\sonly", guide, re.DOTALL)
    paths = {match["value"] for match in matches if match["type"] != "RegularExpression"}
    assert set(re.findall("`(.+?)`", named)) == paths


def test_the_route_has_no_end_for_streams_and_asks_browsers_for_https() -> None:
    """Rule for rule: there is no schema of the Gateway API here that would find a misspelt field."""
    service, (route, from_http) = resource("Service"), [each for each in resources() if is_of_gateway(each)]
    header = {"name": "Strict-Transport-Security", "value": "max-age=31536000"}
    for rule in route["spec"]["rules"]:
        assert rule == {
            "matches": rule["matches"],
            "filters": [{"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [header]}}],
            "timeouts": {"request": "0s"},
            "backendRefs": [{"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}],
        }
    redirect = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "statusCode": 301}}
    assert from_http["spec"]["rules"] == [{"filters": [redirect]}]
    for each in (route, from_http):
        assert [f"https://{host}" for host in each["spec"]["hostnames"]] == [
            resource("ConfigMap")["data"]["RINGSIDE_PUBLIC_URL"]
        ]


# ── nginx ──


@pytest.mark.parametrize("header", ["Host", "X-Forwarded-For", "X-Forwarded-Proto", "Upgrade", "Connection"])
def test_the_guide_s_nginx_passes_on_what_it_keeps_back_by_itself(header: str) -> None:
    """Without the last two no WebSocket is opened, without the others all clients are one."""
    text = (DEPLOY.parent / "docs/deployment.md").read_text(encoding="utf-8")
    (server,) = re.findall(r"```nginx\n(.*?)```", text, re.DOTALL)
    assert f"proxy_set_header {header} $" in server
    assert "proxy_http_version 1.1;" in server


# ── systemd ──


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_names_existing_settings_and_commands(unit: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    assert set(re.findall(r"RINGSIDE_[A-Z_]+", text)) <= SETTINGS
    assert re.findall(r"^ExecStart=/opt/ringside/bin/ringside (\w+)", text, re.MULTILINE)[0] in COMMANDS


def test_the_units_run_as_one_user_with_the_same_restrictions() -> None:
    """Both use one data folder; a restriction that is added to one is added to the other."""
    service, daily = (
        {line for line in unit.read_text(encoding="utf-8").partition("# A user")[2].splitlines() if "=" in line}
        for unit in sorted(UNITS, key=lambda unit: "daily" in unit.name)
    )
    assert service - {"WantedBy=multi-user.target"} == daily
    assert {"DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"} <= daily
    timeout = re.findall(r"^TimeoutStopSec=(\d+)", UNITS[-1].read_text(encoding="utf-8"), re.MULTILINE)
    assert int(timeout[0]) > GRACE_SECONDS


def test_the_units_leave_visible_what_the_alerts_about_the_process_need() -> None:
    """`ProcSubset` hides /proc/stat, without which prometheus_client exposes nothing of the process."""
    assert "process_open_fds" in (DEPLOY / "prometheus/alerts.yaml").read_text(encoding="utf-8")
    assert not [unit.name for unit in UNITS if "ProcSubset=pid" in unit.read_text(encoding="utf-8")]


def test_the_daily_unit_does_not_start_a_service_that_was_stopped() -> None:
    """It needs the service's engine, but a service that an operator has stopped stays so."""
    unit, *_ = (DEPLOY / "systemd" / "ringside-daily.service").read_text(encoding="utf-8").partition("[Service]")
    lines = unit.splitlines()
    assert {"Requisite=ringside.service", "After=ringside.service"} <= set(lines)
    assert not [line for line in lines if line.startswith(("Requires=", "Wants=", "BindsTo="))]


def test_the_daily_unit_waits_for_a_service_that_is_starting() -> None:
    """It would take the engine, and keep it while it sends. `After` waits until `serve` says READY=1."""
    service = (DEPLOY / "systemd" / "ringside.service").read_text(encoding="utf-8")
    assert {"Type=notify", "TimeoutStartSec=infinity"} <= set(service.splitlines())


def test_systemd_accepts_the_units() -> None:
    """Where systemd is installed. The programs are missing here, which is all that it may complain about."""
    try:
        units = [str(file) for file in (DEPLOY / "systemd").iterdir()]
        verified = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return
    complaints = [line for line in verified.stderr.splitlines() if "ringside" in line]
    assert [line for line in complaints if "ringside is not executable" not in line] == []
