"""An administrator writes a template, tries its form, publishes it, and later withdraws it, all in the admin."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from portal.audit.models import Entry
from portal.catalog import selectors, services
from portal.catalog.models import Template, TemplateVersion, VersionState
from portal.teams.models import User
from tests.catalog.definitions import EVERY_KIND
from tests.factories import Site, make_version

VERSIONS = "/admin/catalog/templateversion"


@pytest.fixture
def admin(client: Client, admin_user: User) -> Client:
    client.force_login(admin_user)
    return client


@pytest.fixture
def draft(admin_user: User) -> TemplateVersion:
    template = services.save_template(actor=admin_user, template=Template(slug="training", title="Training"))
    version = services.new_draft(actor=admin_user, template=template)
    return services.save_draft(actor=admin_user, version=version, definition=EVERY_KIND)


@pytest.fixture
def published(draft: TemplateVersion, admin_user: User) -> TemplateVersion:
    return services.publish(actor=admin_user, version=draft)


def page(client: Client, address: str, **form: Any) -> str:
    answer = client.post(address, form, follow=True) if form else client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_template_is_made_with_its_first_draft(admin: Client) -> None:
    form = {"title": "Training", "slug": "training", "summary": "", "icon": "box", "position": "5"}
    answer = admin.post("/admin/catalog/template/add/", form)
    version = TemplateVersion.objects.get()
    assert answer.headers["Location"] == f"{VERSIONS}/{version.pk}/change/"
    assert (version.template.slug, version.state) == ("training", VersionState.DRAFT)
    assert {"catalog.template.create", "catalog.version.draft"} <= set(Entry.objects.values_list("action", flat=True))


def test_a_template_shows_its_versions_and_keeps_its_slug(admin: Client, published: TemplateVersion) -> None:
    address = f"/admin/catalog/template/{published.template_id}/change/"
    text = page(admin, address)
    assert f"{VERSIONS}/{published.pk}/change/" in text
    admin.post(
        address,
        {
            "title": "Other",
            "slug": "other",
            "icon": "box",
            "position": "1",
            "versions-TOTAL_FORMS": "0",
            "versions-INITIAL_FORMS": "0",
        },
    )
    published.template.refresh_from_db()
    assert (published.template.title, published.template.slug) == ("Other", "training")


def test_a_draft_is_edited_as_json(admin: Client, draft: TemplateVersion) -> None:
    text = page(admin, f"{VERSIONS}/{draft.pk}/change/")
    assert "&quot;name&quot;: &quot;script&quot;" in text
    changed = {**EVERY_KIND, "queue": "cpu"}
    page(admin, f"{VERSIONS}/{draft.pk}/change/", definition=json.dumps(changed))
    draft.refresh_from_db()
    assert draft.definition["queue"] == "cpu"
    assert Entry.objects.filter(action="catalog.version.edit", actor_name="admin").count() == 2


def test_every_fault_is_shown_by_its_path_and_what_was_typed_stays(admin: Client, draft: TemplateVersion) -> None:
    broken = {"parameters": [{"name": "x", "kind": "intger"}], "work": {"command": []}}
    text = page(admin, f"{VERSIONS}/{draft.pk}/change/", definition=json.dumps(broken))
    assert "parameters.0.kind: There is no kind the text “intger”. Did you mean “integer”?" in text
    assert "work.image: Name the image" in text
    assert "intger&quot;" in text
    draft.refresh_from_db()
    assert draft.definition == EVERY_KIND


@pytest.mark.parametrize("typed", ['{"parameters": [,]}', "", "{", '{"a": NaN}', "[" * 100_000])
def test_what_is_no_json_is_said(admin: Client, draft: TemplateVersion, typed: str) -> None:
    text = page(admin, f"{VERSIONS}/{draft.pk}/change/", definition=typed)
    assert "no JSON" in text or "no number that JSON has" in text or "required" in text
    draft.refresh_from_db()
    assert draft.definition == EVERY_KIND


def test_the_form_can_be_tried_before_it_is_published(admin: Client, draft: TemplateVersion, site: Site) -> None:
    text = page(admin, f"{VERSIONS}/{draft.pk}/try/")
    assert 'name="script"' in text
    assert "NVIDIA H100 (pretended)" in text
    text = page(
        admin,
        f"{VERSIONS}/{draft.pk}/try/",
        script="echo hello",
        epochs="7",
        rate="0.1",
        optimizer="sgd",
        image="busybox:1.37",
        **{
            "gpu.flavor": "h100",
            "gpu.count": "2",
            "memory": "4 GiB",
            "time_limit": "2 h",
            "runs": "1",
            "token": "hunter2",
        },
    )
    assert "What would run" in text
    assert "--epochs=7" in text
    assert "HF_TOKEN" in text
    assert "hunter2" not in text


def test_a_tried_form_shows_its_errors_at_their_fields(admin: Client, draft: TemplateVersion, site: Site) -> None:
    text = page(admin, f"{VERSIONS}/{draft.pk}/try/", epochs="5000", memory="64 GB", token="hunter2")
    assert "It is 5,000; it must be from 1 to 1,000." in text
    assert 'value="64 GB"' in text
    assert "What would run" not in text
    assert "hunter2" not in text


def test_a_broken_draft_says_so_instead_of_its_form(admin: Client, draft: TemplateVersion) -> None:
    TemplateVersion.objects.filter(pk=draft.pk).update(definition={"work": {}})
    assert "work.image" in page(admin, f"{VERSIONS}/{draft.pk}/try/")


def test_a_draft_is_published_after_a_question(admin: Client, draft: TemplateVersion) -> None:
    address = f"{VERSIONS}/{draft.pk}/publish/"
    assert "nobody can change it any more" in page(admin, address)
    draft.refresh_from_db()
    assert draft.is_draft
    page(admin, address, go="1")
    assert selectors.version_for("training").pk == draft.pk


def test_a_published_version_is_only_read(admin: Client, published: TemplateVersion) -> None:
    address = f"{VERSIONS}/{published.pk}/change/"
    text = page(admin, address)
    assert "<textarea" not in text
    assert "New version from this" in text
    assert admin.post(address, {"definition": "{}"}).status_code == 403
    assert admin.post(f"{VERSIONS}/{published.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin.post(f"/admin/catalog/template/{published.template_id}/delete/", {"post": "yes"}).status_code == 403


def test_a_new_version_begins_from_a_published_one(admin: Client, published: TemplateVersion) -> None:
    address = f"{VERSIONS}/{published.pk}/draft/"
    page(admin, address, go="1")
    assert TemplateVersion.objects.get(number=2).definition == EVERY_KIND
    assert "There is a draft already: version 2." in page(admin, address, go="1")


@pytest.mark.parametrize(("verb", "state"), [("deprecate", VersionState.DEPRECATED), ("retire", VersionState.RETIRED)])
def test_a_version_is_withdrawn_with_a_message(
    admin: Client, published: TemplateVersion, verb: str, state: str
) -> None:
    address = f"{VERSIONS}/{published.pk}/{verb}/"
    assert "This field is required." in page(admin, address, message="")
    page(admin, address, message="Take version 2.")
    published.refresh_from_db()
    assert (published.state, published.message) == (state, "Take version 2.")


def test_how_a_definition_is_written_is_said_beside_it(admin: Client, draft: TemplateVersion) -> None:
    assert f"{VERSIONS}/help/" in page(admin, f"{VERSIONS}/{draft.pk}/change/")
    assert "forbids_gpus" in page(admin, f"{VERSIONS}/help/")


def test_a_draft_can_be_thrown_away(admin: Client, draft: TemplateVersion) -> None:
    page(admin, f"{VERSIONS}/{draft.pk}/delete/", post="yes")
    assert not TemplateVersion.objects.exists()
    assert Entry.objects.filter(action="catalog.version.delete").exists()


def test_nobody_else_gets_in(client: Client, draft: TemplateVersion, lead: User, auditor: User) -> None:
    for person in (lead, auditor):
        client.force_login(person)
        for part in ("change", "try", "publish", "retire", "draft"):
            answer = client.post(f"{VERSIONS}/{draft.pk}/{part}/", {"message": "x"})
            assert answer.status_code in (302, 403)
    draft.refresh_from_db()
    assert draft.is_draft


def test_an_unknown_version_is_missing(admin: Client) -> None:
    for part in ("try", "publish"):
        assert admin.get(f"{VERSIONS}/999/{part}/").status_code == 404


def test_the_pages_bring_no_script_and_no_style_of_their_own(admin: Client, draft: TemplateVersion, site: Site) -> None:
    version = make_version("plain", EVERY_KIND)
    for address in (
        *(f"{VERSIONS}/{draft.pk}/{part}/" for part in ("change", "try", "publish")),
        f"{VERSIONS}/{version.pk}/retire/",
        f"{VERSIONS}/",
    ):
        text = page(admin, address)
        assert not re.search(r"\sstyle=|<style|\son[a-z]+=", text), address
        assert all("src=" in tag or 'type="application/json"' in tag for tag in re.findall(r"<script[^>]*>", text)), (
            address
        )
