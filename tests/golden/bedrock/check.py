"""Makes and checks the files of this folder by botocore; see README.md. Needs botocore, and no network."""

import base64
import json
import pathlib
import struct
import sys
import zlib

import botocore.awsrequest
import botocore.auth
import botocore.credentials
import botocore.eventstream
import botocore.exceptions
import botocore.loaders
import botocore.model
import botocore.parsers
import botocore.serialize
import botocore.validate

HERE = pathlib.Path(__file__).parent
MODEL = botocore.model.ServiceModel(
    botocore.loaders.Loader().load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime"
)


def frame(headers, payload):
    printed = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers
    )
    prelude = struct.pack(">II", len(printed) + len(payload) + 16, len(printed))
    prelude += struct.pack(">I", zlib.crc32(prelude))
    message = prelude + printed + payload
    return message + struct.pack(">I", zlib.crc32(message))


def told(kind, name, told):
    headers = [(f":{kind}-type", name), (":content-type", "application/json"), (":message-type", kind)]
    return frame(headers, compact(told))


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def plain(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if name != "ResponseMetadata"}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


class Raw:
    """Stands in for the connection that botocore reads a stream from."""

    def __init__(self, data):
        self.data = data

    def stream(self):
        yield from (self.data[at : at + 7] for at in range(0, len(self.data), 7))

    def close(self):
        pass


def read_stream(data):
    shape = MODEL.operation_model("ConverseStream").get_event_stream_output()
    parser = botocore.parsers.EventStreamJSONParser()
    events = []
    try:
        for event in stream(data, shape, parser):
            events.append(plain(event))
    except botocore.exceptions.EventStreamError as error:
        events.append({"error": plain(error.response["Error"])})
    return events


def stream(data, shape, parser):
    return botocore.eventstream.EventStream(Raw(data), shape, parser, "ConverseStream")


def read_answer(data):
    shape = MODEL.operation_model("Converse").output_shape
    response = {"status_code": 200, "headers": {}, "body": data}
    return plain(botocore.parsers.RestJSONParser().parse(response, shape))


def with_bytes(value):
    """What botocore is to be given: blobs as bytes."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(member)
            if name in ("bytes", "redactedContent")
            else with_bytes(member)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [with_bytes(member) for member in value]
    return value


def check_request(path):
    case = json.loads(path.read_text())
    operation = MODEL.operation_model("Converse")
    parameters = with_bytes(case["converse"]) | {"modelId": case["model"]}
    report = botocore.validate.ParamValidator().validate(parameters, operation.input_shape)
    if report.has_errors():
        sys.exit(f"{path.name}: {report.generate_report()}")
    printed = botocore.serialize.RestJSONSerializer().serialize_to_request(parameters, operation)
    if json.loads(printed["body"]) != case["converse"]:
        sys.exit(f"{path.name}: botocore prints {printed['body']}")
    return f"/{printed['url_path'].lstrip('/')}"


def sign(path, query, headers, body, token):
    credentials = botocore.credentials.Credentials(
        "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token
    )
    host = "bedrock-runtime.eu-central-1.amazonaws.com"
    url = f"https://{host}{path}" + (f"?{query}" if query else "")
    request = botocore.awsrequest.AWSRequest(method="POST", url=url, data=body.encode(), headers=headers)
    request.context["timestamp"] = "20150830T123600Z"
    auth = botocore.auth.SigV4Auth(credentials, "bedrock", "eu-central-1")
    auth._modify_request_before_signing(request)
    canonical = auth.canonical_request(request)
    to_sign = auth.string_to_sign(request, canonical)
    signature = auth.signature(to_sign, request)
    auth._inject_signature_to_request(request, signature)
    return {
        "host": host,
        "path": path,
        "query": query,
        "headers": headers,
        "body": body,
        "session_token": token,
        "canonical": canonical,
        "authorization": request.headers["Authorization"],
    }


def main():
    events = json.loads((HERE / "events.json").read_text())
    whole = b"".join(told("event", name, event) for name, event in events)
    exception = {"message": "Too many tokens, please wait before trying again."}
    cut = b"".join(told("event", name, event) for name, event in events[:6])
    cut += told("exception", "throttlingException", exception)
    (HERE / "stream.bin").write_bytes(whole)
    (HERE / "exception.bin").write_bytes(cut)
    read = {
        "stream": read_stream(whole),
        "exception": read_stream(cut),
        "answer": read_answer((HERE / "answer.json").read_bytes()),
    }
    text = json.dumps(read, ensure_ascii=False, indent=1)
    (HERE / "botocore.json").write_text(text + "\n")
    paths = {check_request(path) for path in sorted((HERE / "requests").glob("*.json"))}
    json_type = {"content-type": "application/json"}
    signed = [sign(path, "", json_type, '{"messages":[]}', None) for path in sorted(paths)]
    arn = "arn%3Aaws%3Abedrock%3Aeu-central-1%3A123456789012%3Ainference-profile%2Feu.a"
    signed.append(sign(f"/model/{arn}/converse-stream", "", json_type, "{}", "token/with+signs="))
    signed.append(sign("/model/plain:0/converse", "b=2&a=%20x&a=1&c", {}, "", None))
    (HERE / "sigv4.json").write_text(json.dumps(signed, indent=1) + "\n")


main()
